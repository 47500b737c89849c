// stint serve
#include "app/serve.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "app/zones.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/session.h"
#include "guard/http_target.h"
#include "os/pieces.h"

namespace stint::cli {
namespace {

constexpr std::array<Option, 19> kServeOptions = {{
    {"--listen", "A", "HOST:PORT to listen on (default 127.0.0.1:7878)"},
    {"--demo", "", "a memory: store of its own and no key, on loopback: to try things out"},
    {"--config", "FILE", "take store and [serve] from here: the names below, with _ for -"},
    {"--tls-cert", "FILE", "certificate chain, PEM: speak TLS; read anew when it changes"},
    {"--tls-key", "FILE", "its key, PEM"},
    {"--tls-client-ca", "FILE", "clients must show a certificate of these authorities"},
    {"--max-connections", "N", "at a time (default 16384)"},
    {"--max-waiters", "N", "acquires and claims held open by wait_ms (default 4096)"},
    {"--max-streams", "N", "event streams (default 1024)"},
    {"--max-body", "BYTES", "longest body of a request (default 262144)"},
    {"--max-header", "BYTES", "longest head of a request (default 16384)"},
    {"--rate", "N", "requests a second and key (default: any)"},
    {"--max-leases", "N", "leases of one key held at a time through this server (default: any)"},
    {"--header-timeout", "D",
     "for the whole head of a request, and until a connection's first (default 10s)"},
    {"--body-timeout", "D",
     "without a byte of a body, or of our answer taken; four times that for a body (default 30s)"},
    {"--idle-timeout", "D", "between two requests of a connection (default 5m)"},
    {"--store-threads", "N", "calls of the store at a time (default 32)"},
    {"--drain", "D", "when told to stop: how long for what is under way (default 30s)"},
    {"--log", "HOW", "text, json, or with +all every request: text+all, json+all (default text)"},
}};
constexpr std::array<std::string_view, 4> kServeExamples = {
    "stint serve --demo",
    "stint key create ci --allow acquire,read --prefix team-a/",
    "stint serve --listen 0.0.0.0:7878 --tls-cert cert.pem --tls-key key.pem",
    "STINT_KEY=stint_... stint run --store https://stint.example.org blog-repo -- ./publish.sh",
};

// Options from the line, then from the file.
class Given {
 public:
  Given(const Session& session, std::map<std::string, std::string> file)
      : words_(session.words()), file_(std::move(file)) {}

  std::optional<std::string> value(std::string_view option) const {
    if (auto here = words_.value(option)) return here;
    std::string name(option.substr(2));
    for (char& c : name) c = c == '-' ? '_' : c;
    const auto found = file_.find(name);
    if (found == file_.end()) return std::nullopt;
    return found->second;
  }
  template <class Number>
  Status number(std::string_view option, Number& out) const {
    const auto text = value(option);
    if (!text) return {};
    const auto read = parse_digits(*text);
    if (!read || *read == 0) return invalid(cat(option, " is a number above zero"));
    out = static_cast<Number>(*read);
    return {};
  }
  Status duration(std::string_view option, Millis& out) const {
    const auto text = value(option);
    if (!text) return {};
    auto read = parse_duration(*text);
    if (!read) return invalid(cat(option, ": ", read.error().message));
    out = *read;
    return {};
  }
  // A name in the file that no option has is a mistake.
  Status check_file() const {
    for (const auto& [name, value] : file_) {
      std::string option = cat("--", name);
      for (char& c : option) c = c == '_' ? '-' : c;
      const bool known = std::ranges::any_of(kServeOptions, [&](const Option& one) {
        return one.name == option && !one.value.empty();
      });
      if (!known)
        return invalid(cat("[serve] in the configuration has an unknown key ", quoted(name)));
    }
    return {};
  }

 private:
  const Words& words_;
  const std::map<std::string, std::string> file_;
};

Status read_limits(const Given& given, app::ServeRun& run) {
  server::ServeLimits& limits = run.serve.limits;
  limits.http.connections = 16'384;
  limits.http.idle_time = Millis(300'000);
  for (auto [option, place] :
       {std::pair{"--max-connections", &limits.http.connections},
        std::pair{"--max-header", &limits.http.head_bytes},
        std::pair{"--max-waiters", &limits.waiters}, std::pair{"--max-streams", &limits.streams},
        std::pair{"--max-body", &limits.body_bytes}, std::pair{"--rate", &limits.rate},
        std::pair{"--max-leases", &limits.resources},
        std::pair{"--store-threads", &limits.store_threads}}) {
    if (auto ok = given.number(option, *place); !ok) return ok;
  }
  for (auto [option, place] :
       {std::pair{"--header-timeout", &limits.http.head_time},
        std::pair{"--body-timeout", &limits.http.stall_time},
        std::pair{"--idle-timeout", &limits.http.idle_time}, std::pair{"--drain", &run.drain}}) {
    if (auto ok = given.duration(option, *place); !ok) return ok;
  }
  // Who has said nothing yet, and who trickles, is not waited for: a body is small here.
  constexpr int kWholeBody = 4;
  limits.http.first_time = limits.http.head_time;
  limits.http.request_time = kWholeBody * limits.http.stall_time;
  constexpr std::size_t kMostThreads = 256;
  if (limits.store_threads > kMostThreads) return invalid("--store-threads is at most 256");
  return {};
}

Status read_log(const Given& given, bool json, app::ServeRun& run) {
  const std::string how = given.value("--log").value_or(json ? "json" : "text");
  run.serve.log_json = how.starts_with("json");
  run.serve.log_all = how.ends_with("+all");
  if (how != "text" && how != "json" && how != "text+all" && how != "json+all") {
    return invalid("--log is text, json, text+all or json+all");
  }
  // One write a line: threads do not mix theirs.
  run.serve.log = [](const std::string& line) {
    const std::string whole = line + "\n";
    std::fwrite(whole.data(), 1, whole.size(), stderr);
  };
  return {};
}

Result<app::ServeRun> run_of(Session& session, const Given& given) {
  app::ServeRun run;
  if (auto ok = given.check_file(); !ok) return ok.error();
  auto listen = guard::parse_endpoint(given.value("--listen").value_or("127.0.0.1:7878"));
  if (!listen) return std::move(listen.error()).during("reading --listen");
  run.serve.listen = std::move(*listen);
  run.serve.demo = session.words().has("--demo");
  run.serve.version = STINT_VERSION;
  run.serve.tls = {.certificate = given.value("--tls-cert").value_or(""),
                   .key = given.value("--tls-key").value_or(""),
                   .client_authorities = given.value("--tls-client-ca").value_or("")};
  if (run.serve.tls.certificate.empty() != run.serve.tls.key.empty()) {
    return invalid("--tls-cert and --tls-key: both or none");
  }
  if (run.serve.tls.certificate.empty() && !run.serve.tls.client_authorities.empty()) {
    return invalid("--tls-client-ca needs --tls-cert and --tls-key");
  }
  if (auto ok = read_limits(given, run); !ok) return ok.error();
  if (auto ok = read_log(given, session.json(), run); !ok) return ok.error();
  run.notify_socket = session.environment().get("NOTIFY_SOCKET").value_or("");
  run.say = [&session, json = run.serve.log_json, log = run.serve.log](const std::string& line) {
    if (!json) return session.report(line);
    if (session.quiet()) return;
    log(api::to_json(
        std::vector<api::JsonField>{{"at_ms", to_ms(session.clock().wall())}, {"message", line}}));
  };
  return run;
}

// Of a demo, a store of its own, never the user's.
Result<app::OpenOptions> options_of(Session& session, bool demo) {
  if (demo) {
    auto url = app::parse_store_url("memory:");
    if (!url) return url.error();
    return app::OpenOptions{.url = *url, .state_directory = ""};
  }
  auto settings = session.settings();
  if (!settings) return settings.error();
  return app::OpenOptions{.url = (*settings)->store_url,
                          .state_directory = (*settings)->state_directory,
                          .may_create = true,
                          .key = (*settings)->key};
}

int serve_command(Session& session) {
  const bool demo = session.words().has("--demo");
  if (demo && session.words().value("--store")) {
    return session.fail(invalid("--demo has a store of its own: no --store with it"));
  }
  std::map<std::string, std::string> file;
  std::string printable = "memory:";
  if (!demo) {
    auto settings = session.settings();
    if (!settings) return session.fail(settings.error());
    file = (*settings)->serve;
    printable = (*settings)->store_url.printable;
    const std::string& scheme = (*settings)->store_url.scheme;
    if (scheme == "http" || scheme == "https") {
      return session.fail(invalid("a server stands on a store, not on another server"));
    }
  }
  auto run = run_of(session, Given(session, std::move(file)));
  if (!run) return session.fail(run.error());
  run->store = printable;
  auto options = options_of(session, demo);
  if (!options) return session.fail(options.error());
  run->options = *options;
  os::restart_with_more_pieces();
  // Before the first thread.
  auto signals = os::Signals::make();
  if (!signals) return session.fail(signals.error());
  std::unique_ptr<app::Opened> own;
  app::Opened* opened = nullptr;
  if (demo) {
    auto made = app::Opened::open(run->options, session.clock(), session.random());
    if (!made) return session.fail(made.error());
    own = std::move(*made);
    opened = own.get();
  } else {
    auto there = session.open();
    if (!there) return session.fail(there.error());
    opened = *there;
  }
  if (!demo) {
    auto queue = opened->queue();
    if (!queue) return session.fail(queue.error());
    if (auto made = api::declare_queues(**queue, (*session.settings())->queues); !made) {
      return session.fail(made.error());
    }
  }
  run->find_zone = [&session](const std::string& name) {
    return app::find_zone(name, session.environment());
  };
  auto end = app::run_server(*opened, session.clock(), session.random(), *signals, std::move(*run));
  if (!end) return session.fail(end.error());
  if (!end->clean) session.warn("some requests were cut");
  return end->clean ? kDone : kFailed;
}

}  // namespace

const Command kServe = {
    .name = "serve",
    .operands = "",
    .summary = "leases over HTTP, for who cannot or should not reach the store",
    .details =
        "An HTTP/1.1 JSON API under /v1 (described at /v1/openapi.json) on any store; clients use "
        "it "
        "with --store http://HOST:PORT or https://HOST. Several servers on one postgres:, redis: "
        "or "
        "etcd: store are interchangeable.\n"
        "Without a key it listens on loopback alone; once a key exists (stint key create) every "
        "request needs one. A request's owner is KEYNAME/label.\n"
        "SIGTERM stops it gracefully: nothing new is taken, what is under way is answered. SIGHUP "
        "reads the certificate anew; so does a change of its file. /healthz, /readyz and /metrics "
        "are there. docs/guides/server.md has the rest.",
    .examples = kServeExamples,
    .options = kServeOptions,
    .least_operands = 0,
    .most_operands = 0,
    .runs_command = false,
    .run = serve_command,
};

}  // namespace stint::cli
