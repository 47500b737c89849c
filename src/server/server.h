// `stint serve`: leases, fences, events, queues and schedules over HTTP, for who cannot reach the
// store.
//
// This is the face of a module: Boost is not loaded at every start of the program. It sees `api`
// alone: what stands behind it, and that several servers share it, is not its business. Nothing
// that matters is kept in memory: a server that dies takes nothing along but who was waiting.
// Thread safety: any thread, but stop() and the destruction, which are one thread's.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/batch.h"
#include "api/events.h"
#include "api/fences.h"
#include "api/kept.h"
#include "api/keys.h"
#include "api/leases.h"
#include "api/once.h"
#include "api/queue.h"
#include "api/slots.h"
#include "base/random.h"
#include "net/http/server.h"
#include "server/page.h"

namespace stint::server {

// What the doctor finds on the store behind a server: one examination, whole or so far.
struct Examined {
  struct Finding {
    std::string check;
    std::string level;  // ok, warn, fail
    std::string text;
  };
  bool running = false;
  std::optional<WallTime> began_at = {};  // none: there was no examination yet
  std::optional<WallTime> ended_at = {};
  std::string fault = {};  // why it did not come to its end
  std::vector<Finding> findings = {};
};

struct Backend {
  api::Leases* leases = nullptr;
  api::Fences* fences = nullptr;
  api::Events* events = nullptr;
  api::Keys* keys = nullptr;
  // Null: each verb is asked for by itself, many at a time.
  api::BatchedLeases* batch = nullptr;
  api::Queue* queue = nullptr;
  // Null: the keys of verbs that keep no answer by themselves are not kept.
  api::KeptAnswers* answers = nullptr;
  std::function<api::Keeping(const api::Once& once)> keeping = {};  // with `answers`
  api::Slots* slots = nullptr;
  std::function<Result<core::Zone>(const std::string& name)> find_zone = {};
  // The newest slots of a job, oldest first, dropped ones too.
  std::function<Result<std::vector<api::SlotView>>(const std::string& job, std::size_t limit)>
      list_slots = {};
  // What would become of a job's slots.
  std::function<api::Foretold(const core::JobRule& rule, const api::Outage& outage,
                              std::size_t limit, bool paused)>
      explain = {};
  // Why the store is refused or in trouble, as it was seen last; empty: it is well.
  std::function<std::string()> trouble = {};
  // Begins an examination where none is fresh; never waits for it.
  std::function<Examined()> examine = {};
  // The last one, or as far as it has come; begins none.
  std::function<Examined()> examined = {};
  // Whether a target may be remembered in these words: as the command line writes it, of a kind
  // that it knows, meaning the same everywhere, without a password. Errors: Invalid.
  std::function<Status(const std::string& words)> check_target = {};
};

struct ServeLimits {
  net::http::Limits http;
  std::size_t body_bytes = std::size_t{256} << 10U;
  std::size_t store_threads = 32;
  std::size_t most_queued = 8192;  // requests that wait for a store thread
  std::size_t waiters = 4096;      // held open by wait_ms, in all
  std::size_t streams = 1024;      // event streams
  std::size_t rate = 0;            // requests a second and key, with a burst of as many; 0: any
  std::size_t resources = 0;       // of one key held at a time through this server; 0: any
  Millis longest_wait{600'000};
  Millis tend_every{5000};  // at the latest, the janitor looks after the queues; zero: it does not
};

struct ServeRequest {
  net::http::Endpoint listen;
  net::http::ServerTls tls;
  ServeLimits limits;
  Backend backend;                  // outlives the server
  Random* random = nullptr;         // outlives the server
  std::vector<PageFile> page = {};  // empty: it is not installed
  std::string version;
  std::string caveat;  // what the store can lose
  bool demo = false;   // no key is asked for
  bool log_json = false;
  bool log_all = false;  // also what went as it should
  // One line, without its end. Any thread. Never a secret, a claim or a body.
  std::function<void(const std::string&)> log;
};

class Server {
 public:
  virtual ~Server() = default;
  virtual std::uint16_t port() const = 0;
  // Refuses what is new, waits so long for what is under way. True: all of it was answered.
  virtual bool stop(Millis patience) = 0;
  // Reads the TLS files anew.
  virtual Status reload() = 0;
};

using OpenedServer = Result<std::unique_ptr<Server>>;
OpenedServer open_server(const ServeRequest& request, const Clock& clock);

// The entry of the module; see store/module.h.
using ServerEntry = void(const ServeRequest& request, const Clock& clock, OpenedServer* answer);
constexpr const char* kServerEntry = "stint_open_server";

}  // namespace stint::server
