# The Worker on `workerd`, for dev.sh: the same runtime, the objects' storage in a folder.
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "stint", worker = .stint),
    (name = "disk", disk = (writable = true)),
  ],
  sockets = [(name = "http", service = "stint")],
);

const stint :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  compatibilityDate = "2026-11-01",
  bindings = [
    (name = "STORES", durableObjectNamespace = "StintStore"),
    (name = "STINT_KEY", fromEnvironment = "STINT_KEY"),
    (name = "STINT_KEY_NEXT", fromEnvironment = "STINT_KEY_NEXT"),
  ],
  # The key must never change: the objects' names are made from it.
  durableObjectNamespaces = [(className = "StintStore", uniqueKey = "stint-store", enableSql = true)],
  durableObjectStorage = (localDisk = "disk"),
);
