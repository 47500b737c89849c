using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [(name = "cas", worker = .cas)],
  sockets = [(name = "http", service = "cas")],
);

const cas :Workerd.Worker = (
  modules = [(name = "cas.js", esModule = embed "cas.js")],
  compatibilityDate = "2026-11-01",
  bindings = [(name = "CAS", durableObjectNamespace = "Cas")],
  durableObjectNamespaces = [(className = "Cas", uniqueKey = "cas")],
  durableObjectStorage = (inMemory = void),
);
