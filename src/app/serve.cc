#include "app/serve.h"

#include "app/demo.h"
#include "app/examiner.h"
#include "app/modules.h"
#include "base/sha256.h"
#include "base/text.h"
#include "guard/git_target.h"
#include "guard/http_target.h"
#include "guard/targets.h"
#include "os/files.h"
#include "os/pause.h"
#include "os/service_notice.h"
#include "schedule/listing.h"
#include "store/seam.h"

namespace stint::app {
namespace {

constexpr Millis kTick{2000};           // refusals that were counted are written
constexpr Millis kLookAtFiles{15'000};  // certificates that were replaced are read
constexpr Millis kSweep{600'000};       // old answers are removed
constexpr Millis kSweepAtATime{200};    // of a tick: signals and the watchdog do not wait for it

// What the TLS files hold now; empty where one cannot be read.
std::string digest_of(const net::http::ServerTls& tls) {
  std::string all;
  for (const std::string* path : {&tls.certificate, &tls.key, &tls.client_authorities}) {
    if (path->empty()) continue;
    auto text = os::read_file(*path);
    if (!text) return {};
    all += sha256(*text);
  }
  return all;
}

class Caretaker {
 public:
  Caretaker(Opened& opened, server::Server& server, const ServeRun& run, const Clock& clock)
      : opened_(opened),
        server_(server),
        run_(run),
        clock_(clock),
        digest_(digest_of(run.serve.tls)) {}

  void tick() {
    const MonoTime now = clock_.mono();
    opened_.flush();
    look_at_store();
    (void)os::notify_manager(run_.notify_socket, "WATCHDOG=1");
    if (now - looked_ >= kLookAtFiles) {
      looked_ = now;
      const std::string present = digest_of(run_.serve.tls);
      if (!present.empty() && present != digest_) reload();
    }
    sweep(now);
  }

  void reload() {
    if (run_.serve.tls.certificate.empty()) return;
    auto done = server_.reload();
    // A pair that is half replaced is looked at again at the next tick.
    run_.say(done ? "the certificate was read anew"
                  : cat("the certificate is kept as it was: ", done.error().message));
    if (done) digest_ = digest_of(run_.serve.tls);
  }

 private:
  // A page is one commit; what is not done by then is for the next tick.
  void sweep(MonoTime now) {
    if (sweep_from_.empty() && now - swept_ < kSweep) return;
    swept_ = now;
    do {
      auto next = opened_.sweep(sweep_from_);
      if (!next) run_.say(cat("sweeping: ", next.error().message));
      sweep_from_ = next ? *next : "";
    } while (!sweep_from_.empty() && clock_.mono() - now < kSweepAtATime);
  }

  // Its trouble is said once, and so is its end. `stint doctor` through the server tells it, too.
  void look_at_store() {
    const std::string present = opened_.trouble();
    if (present == trouble_) return;
    run_.say(present.empty() ? "the store has no trouble any more"
                             : cat("warning, the store has trouble: ", present));
    trouble_ = present;
  }

  Opened& opened_;
  server::Server& server_;
  const ServeRun& run_;
  const Clock& clock_;
  std::string digest_;
  std::string trouble_;  // of the store, as it was said
  MonoTime looked_{};
  MonoTime swept_{};
  std::string sweep_from_;  // the last that was looked at; empty: all were
};

// A few descriptors are kept for the store and the log.
void keep_spare_descriptors(ServeRun& run) {
  const std::size_t descriptors = os::raise_descriptor_limit();
  constexpr std::size_t kSpare = 64;
  std::size_t& connections = run.serve.limits.http.connections;
  if (descriptors > 2 * kSpare && connections > descriptors - kSpare) {
    run.say(cat("at most ", descriptors - kSpare, " connections: the limit of open files is ",
                descriptors));
    connections = descriptors - kSpare;
  }
}

// What clients have settled already: here nothing is made absolute, and no remote has a name.
Status check_target(const std::string& words) {
  auto target = guard::parse_target(words, "/");
  if (!target) return target.error();
  if (target->words != words) {
    return invalid("a target is remembered by its absolute words: file:/PATH, git:URL#BRANCH ...");
  }
  if (target->kind != guard::TargetKind::Git) return {};
  auto git = guard::parse_git_target(words);
  if (!git) return git.error();
  const std::string& remote = git->remote;
  const bool whole = remote.starts_with('/') || remote.find(':') != remote.npos;
  // ext::COMMAND and its like are programs that git would start on the machines of later holders.
  const bool program = remote.find("::") < remote.find_first_of("/@[");
  if (git->named || !whole || program) {
    return invalid("a git target is remembered by the URL or the absolute path of its repository");
  }
  return {};
}

server::Backend backend_of(Opened& opened, api::Queue* queue, const ServeRun& run,
                           Examiner& examiner) {
  return {.leases = &opened.leases(),
          .fences = &opened.fences(),
          .events = &opened.events(),
          .keys = &opened.keys(),
          .batch = opened.batch(),
          .queue = queue,
          .answers = opened.answers(),
          .keeping = [&opened](const api::Once& once) { return opened.keeping(once); },
          .slots = &opened.slots(),
          .find_zone = run.find_zone,
          .list_slots = [&opened, zones = run.find_zone](const std::string& job, std::size_t limit)
              -> Result<std::vector<api::SlotView>> {
            auto history = opened.slots().history(job, limit);
            if (!history) return history.error();
            return schedule::list_slots(job, *history, limit, zones);
          },
          .explain = schedule::foretell,
          .trouble = [&opened] { return opened.trouble(); },
          .examine = [&examiner] { return examiner.ask(); },
          .examined = [&examiner] { return examiner.told(); },
          .check_target = check_target};
}

// The demo's runs ask the server like everybody: what it counts and measures is lively, too. Null:
// it cannot be asked from here, and the runs are played on the store itself.
std::unique_ptr<Opened> open_stage(const std::string& where, const ServeRun& run,
                                   const Clock& clock, Random& random) {
  // Over TLS the server would have to be believed first.
  if (!run.serve.tls.certificate.empty()) return nullptr;
  auto url = parse_store_url(where);
  auto stage =
      url ? Opened::open({.url = *url, .state_directory = ""}, clock, random) : url.error();
  if (stage) return std::move(*stage);
  // A proxy of the environment that does not lead back here, for one.
  run.say(cat("the demo plays on the store itself, and the measures do not show it: ",
              stage.error().message));
  return nullptr;
}

}  // namespace

Result<ServeEnd> run_server(Opened& opened, const Clock& clock, Random& random,
                            os::Signals& signals, ServeRun run) {
  keep_spare_descriptors(run);
  auto queue = opened.queue();
  if (!queue) return queue.error();
  Examiner examiner(examined_store(opened, run.options, clock), clock, random);
  run.serve.backend = backend_of(opened, *queue, run, examiner);
  run.serve.random = &random;
  // A server without its page still serves: it says so where the page would be.
  if (auto page = open_module_page(clock)) {
    run.serve.page = std::move(*page);
  } else {
    run.say(cat("no page: ", page.error().message));
  }
  run.serve.caveat = opened.caveat();
  auto server = open_module_server(run.serve, clock);
  if (!server) return server.error();
  net::http::Endpoint at = run.serve.listen;
  at.port = (*server)->port();
  const bool tls = !run.serve.tls.certificate.empty();
  std::string where = guard::endpoint_text(at);
  if (tls && where.starts_with("http:")) where.insert(4, "s");
  run.say(cat("listening on ", where, ", store ", run.store));
  if (!run.serve.caveat.empty()) run.say(cat("this store can lose: ", run.serve.caveat));
  (void)os::notify_manager(run.notify_socket, "READY=1");
  std::unique_ptr<Opened> stage;
  std::unique_ptr<Demo> demo;
  if (run.serve.demo) {
    stage = open_stage(where, run, clock, random);
    Opened& on = stage ? *stage : opened;
    auto items = on.queue();
    if (!items) return items.error();
    demo =
        std::make_unique<Demo>(Demo::Stage{on.leases(), on.events(), on.slots(), **items}, clock);
    run.say(cat("the runs that you see are played; open ", where, " in a browser"));
  }
  Caretaker caretaker(opened, **server, run, clock);
  while (true) {
    os::wait_readable({signals.fd()}, clock.mono() + kTick);
    caretaker.tick();
    const auto got = signals.take();
    if (!got) continue;
    if (got->number == SIGHUP) caretaker.reload();
    if (got->number != SIGTERM && got->number != SIGINT) continue;
    (void)os::notify_manager(run.notify_socket, "STOPPING=1");
    run.say("stopping: what is under way is answered, nothing new is taken");
    demo.reset();  // while it is still answered
    const bool clean = (*server)->stop(run.drain);
    opened.flush();
    return ServeEnd{.signal = got->number, .clean = clean};
  }
}

}  // namespace stint::app
