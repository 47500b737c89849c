#include "app/torture.h"

#include <algorithm>
#include <csignal>
#include <map>
#include <set>

#include "app/torture_net.h"
#include "base/text.h"
#include "os/directory.h"
#include "os/files.h"
#include "os/pause.h"
#include "os/program.h"
#include "os/temp_folder.h"
#include "os/worker.h"
#include "probe/history_checker.h"
#include "probe/torture.h"
#include "service/fence_records.h"
#include "service/records.h"

namespace stint::app {
namespace {

constexpr Millis kSettling{20'000};
constexpr std::size_t kMostHistoryBytes = std::size_t{4} << 30U;
constexpr std::size_t kMostTargetBytes = 16U << 20U;

struct TortureFaults {
  std::uint64_t stops = 0;
  std::uint64_t long_stops = 0;  // past the ttl
  std::uint64_t kills = 0;
};

class Conductor {
 public:
  Conductor(const OpenOptions& options, const Environment& environment, const Clock& clock,
            Random& random, os::Signals& signals, const TortureRequest& request,
            const probe::TorturePlan& plan, const std::string& folder,
            std::optional<TortureNet> net)
      : request_(request),
        plan_(plan),
        folder_(folder),
        clock_(clock),
        random_(random),
        signals_(signals),
        net_(std::move(net)),
        clients_(static_cast<std::size_t>(request.clients)) {
    auto variables = environment.all();
    variables["STINT_STORE"] = net_ ? net_->url() : options.url.whole;
    variables.erase("STINT_STORE_FILE");
    for (const auto& [name, value] : variables) environment_.push_back(cat(name, "=", value));
  }
  ~Conductor() {
    for (Client& client : clients_) end(client);
  }
  Conductor(const Conductor&) = delete;
  Conductor& operator=(const Conductor&) = delete;

  // Until the time is over or a signal comes.
  Status run() {
    began_ = clock_.mono();
    const MonoTime until = began_ + request_.length;
    MonoTime next_word = began_ + Millis(10'000);
    for (Client& client : clients_) {
      if (auto started = start(client); !started) return started;
    }
    while (clock_.mono() < until && !interrupted_) {
      wait(std::min(until, clock_.mono() + Millis(static_cast<std::int64_t>(
                                               random_.below(1600 / clients_.size() + 1)))));
      if (auto well = look_after(); !well) return well;
      strike();
      if (clock_.mono() >= next_word) {
        next_word += Millis(10'000);
        tell_progress();
      }
    }
    length_ = std::chrono::duration_cast<Millis>(clock_.mono() - began_);
    return settle();
  }

  const TortureFaults& faults() const { return faults_; }
  const std::optional<TortureNet>& net() const { return net_; }
  Millis length() const { return length_; }
  MonoTime began() const { return began_; }

 private:
  struct Client {
    std::optional<os::Worker> worker;
    int life = 0;
    bool expected_dead = false;
    std::optional<MonoTime> resume_at;
  };

  Status start(Client& client) {
    const auto number = static_cast<std::size_t>(&client - clients_.data());
    const std::string name = cat("c", number, ".", ++client.life);
    std::vector<std::string> variables = environment_;
    variables.push_back(cat(kTortureVariable, "=", folder_, "\n", name, "\n", plan_.prefix, "\n",
                            plan_.resources, "\n", plan_.ttl.count()));
    auto worker = os::Worker::start({.argv = {os::own_program(), "torture"},
                                     .environment = std::move(variables),
                                     .signal_mask = signals_.original_mask()});
    if (!worker) return worker.error();
    client.worker.emplace(std::move(*worker));
    client.expected_dead = false;
    client.resume_at.reset();
    return {};
  }

  void wait(MonoTime until) {
    std::vector<int> fds = {signals_.fd()};
    for (const Client& client : clients_) {
      if (client.worker) fds.push_back(client.worker->fd());
      if (client.resume_at) until = std::min(until, *client.resume_at);
    }
    os::wait_readable(fds, until);
    while (const auto received = signals_.take()) {
      const int n = received->number;
      interrupted_ = interrupted_ || n == SIGINT || n == SIGTERM || n == SIGQUIT || n == SIGHUP;
    }
  }

  // Wakes who has slept enough, and gives the dead a successor.
  Status look_after() {
    for (Client& client : clients_) {
      if (client.resume_at && clock_.mono() >= *client.resume_at) {
        client.worker->signal(SIGCONT);
        client.resume_at.reset();
      }
      const os::Sighting seen = client.worker->look();
      if (seen.runs) continue;
      client.worker.reset();
      if (!client.expected_dead) {
        return Error{Code::Failed, cat("a client ended by itself: ", os::how_it_ended(seen.end))};
      }
      if (auto started = start(client); !started) return started;
    }
    return {};
  }

  void strike() {
    if (net_ && random_.below(2) == 0) {
      net_->strike(random_);
      return;
    }
    Client& client = clients_[random_.below(clients_.size())];
    if (client.resume_at || client.expected_dead) return;
    if (random_.below(3) == 0) {
      client.worker->signal(SIGKILL);
      client.expected_dead = true;
      ++faults_.kills;
      return;
    }
    const auto most = static_cast<std::uint64_t>(plan_.ttl.count()) * 5 / 2;
    const Millis length(static_cast<std::int64_t>(20 + random_.below(most)));
    client.worker->signal(SIGSTOP);
    client.resume_at = clock_.mono() + length;
    ++(length > plan_.ttl ? faults_.long_stops : faults_.stops);
  }

  void tell_progress() {
    os::FileFacts facts;
    static_cast<void>(os::facts_of(cat(folder_, "/history"), facts));
    request_.say(
        cat(std::chrono::duration_cast<std::chrono::seconds>(clock_.mono() - began_).count(),
            " s: ", faults_.stops + faults_.long_stops, " stopped, ", faults_.kills, " killed, ",
            facts.size / 1024, " KiB of history"));
  }

  // Everybody may end what is under way; who does not is killed.
  Status settle() {
    if (auto told = os::overwrite_file(cat(folder_, "/stop"), "stop\n"); !told) return told;
    if (net_) net_->forward();
    for (Client& client : clients_) {
      if (client.worker) client.worker->signal(SIGCONT);
    }
    const MonoTime until = clock_.mono() + kSettling;
    const auto working = [&] {
      bool any = false;
      for (Client& client : clients_) {
        if (client.worker && !client.worker->look().runs) client.worker.reset();
        any = any || client.worker.has_value();
      }
      return any;
    };
    while (working() && clock_.mono() < until) os::pause_for(Millis(20));
    for (Client& client : clients_) end(client);
    return {};
  }

  static void end(Client& client) {
    if (!client.worker) return;
    client.worker->signal(SIGKILL);
    client.worker->wait();
    client.worker.reset();
  }

  const TortureRequest& request_;
  const probe::TorturePlan& plan_;
  const std::string folder_;
  const Clock& clock_;
  Random& random_;
  os::Signals& signals_;
  std::optional<TortureNet> net_;
  std::vector<std::string> environment_;
  std::vector<Client> clients_;
  TortureFaults faults_;
  MonoTime began_{};
  Millis length_{0};
  bool interrupted_ = false;
};

// All that a resource of ours has left in the store. Its name cannot come again.
Status remove_records(store::Store& store, const probe::TorturePlan& plan) {
  for (int i = 0; i < plan.resources; ++i) {
    const std::string resource = probe::resource_of(plan, i);
    std::vector<std::string> keys = {service::own_key(resource),    service::alive_key(resource),
                                     service::work_key(resource),   service::cap_key(resource),
                                     service::rest_key(resource),   service::cool_key(resource),
                                     service::sealed_key(resource), service::seals_key(resource)};
    for (std::string after;;) {
      auto past =
          store.scan({.prefix = service::history_prefix(resource), .after = after, .limit = 500});
      if (!past) return past.error();
      if (past->entries.empty()) break;
      for (const store::Entry& entry : past->entries) keys.push_back(entry.key);
      after = keys.back();
    }
    std::vector<store::Step> steps;
    for (std::size_t k = 0; k < keys.size(); ++k) {
      store::Step step;
      step.kind = store::Step::Kind::Remove;
      step.key = keys[k];
      steps.push_back(std::move(step));
      if (steps.size() < 32 && k + 1 < keys.size()) continue;
      auto removed = store.commit(steps, store::Sync::Relaxed);
      if (!removed) return removed.error();
      steps.clear();
    }
  }
  return {};
}

// What the files say in the end: their lines, and the highest fence beside each.
Status observe_targets(const std::string& folder, const probe::TorturePlan& plan,
                       std::vector<probe::HistoryEvent>& history) {
  os::Directory directory;
  std::vector<std::string> names;
  if (os::Directory::open(folder, directory) != 0 || directory.list(names) != 0) {
    return unavailable(cat("the folder ", quoted(folder), " cannot be read"));
  }
  std::ranges::sort(names);
  // Every one at which a write was acknowledged, whether it is still there or not.
  std::map<std::string, std::set<std::string>> used;
  for (const probe::HistoryEvent& event : history) {
    const bool written = event.verb == probe::verbs::kWrite && event.phase == probe::Phase::Ok;
    if (!event.target.empty() && (written || os::exists(cat(folder, "/", event.target)))) {
      used[event.resource].insert(event.target);
    }
  }
  for (int i = 0; i < plan.resources; ++i) {
    const std::string resource = probe::resource_of(plan, i);
    for (const std::string& target : used[resource]) {
      auto body = os::read_file(cat(folder, "/", target), kMostTargetBytes);
      if (!body) return body.error();
      const auto lines = probe::parse_target(*body);
      if (!lines) return Error{Code::Failed, cat("the target ", quoted(target), " is torn")};
      std::ranges::move(probe::landed_events(resource, target, *lines),
                        std::back_inserter(history));
      probe::HistoryEvent fence;
      fence.op = cat("fence/", target);
      fence.phase = probe::Phase::Ok;
      fence.verb = probe::verbs::kFence;
      fence.resource = resource;
      fence.target = target;
      const std::string prefix = cat(".", target, ".fence.");
      for (const std::string& name : names) {
        const auto token = name.starts_with(prefix)
                               ? parse_digits(std::string_view(name).substr(prefix.size()))
                               : std::nullopt;
        if (token) fence.token = std::max(fence.token, Token(*token));
      }
      history.push_back(std::move(fence));
    }
  }
  return {};
}

Millis since(const probe::HistoryEvent& event, MonoTime began) {
  const Nanos at = event.local.value_or(Nanos(0)) - began.time_since_epoch();
  return std::max(Millis(0), std::chrono::duration_cast<Millis>(at));
}

// The picture: grants from their answer to the next end that their holder or another was told of.
report::TortureLane lane_of(const std::string& resource,
                            const std::vector<probe::HistoryEvent>& history, MonoTime began,
                            Millis length) {
  report::TortureLane lane{.name = resource, .held = {}, .writes = {}};
  namespace verbs = probe::verbs;
  for (const probe::HistoryEvent& event : history) {
    if (event.resource != resource || event.phase == probe::Phase::Invoke || !event.local) continue;
    const Millis at = since(event, began);
    const bool ok = event.phase == probe::Phase::Ok;
    if (event.verb == verbs::kWrite && event.phase != probe::Phase::Info) {
      lane.writes.push_back({at, ok,
                             cat("token ", event.token.number(), ", ", event.client,
                                 ok ? ", accepted" : ", refused: ", event.cause)});
    }
    const bool ends = ok && (event.verb == verbs::kRelease || event.verb == verbs::kRevoke ||
                             event.verb == verbs::kTransfer || event.verb == verbs::kAcquire);
    if (ends && !lane.held.empty() && lane.held.back().to > at) lane.held.back().to = at;
    if (ok && event.verb == verbs::kAcquire && event.ttl) {
      lane.held.push_back(
          {at, std::min(length, at + *event.ttl), event.token.number(), event.client});
    } else if (ok && event.verb == verbs::kRenew && !lane.held.empty() && event.ttl &&
               lane.held.back().token == event.token.number()) {
      lane.held.back().to = std::min(length, at + *event.ttl);
    }
  }
  return lane;
}

report::TortureStory story_of(const std::vector<probe::HistoryEvent>& history,
                              const probe::TorturePlan& plan, const store::Capabilities& can,
                              const Conductor& conductor) {
  probe::CheckOptions options;
  options.fires_late_by = can.step;
  if (can.failover_restarts_timers) options.fires_late_by.reset();
  const probe::HistoryReport found = probe::check_history(history, options);
  report::TortureStory story;
  story.length = conductor.length();
  std::map<std::string, std::uint64_t> writes;
  std::uint64_t grants = 0;
  for (const probe::HistoryEvent& event : history) {
    if (event.verb == probe::verbs::kAcquire && event.phase == probe::Phase::Ok) ++grants;
    if (event.verb != probe::verbs::kWrite) continue;
    // Without an answer, because its process was killed: unknown too.
    if (event.phase == probe::Phase::Invoke) ++writes["unknown"];
    if (event.phase == probe::Phase::Ok || event.phase == probe::Phase::Fail) --writes["unknown"];
    if (event.phase == probe::Phase::Invoke || event.phase == probe::Phase::Info) continue;
    ++writes[event.phase == probe::Phase::Ok ? "accepted"
             : event.cause == "stale"        ? "stale"
                                             : "refused"];
  }
  std::uint64_t landed = 0;
  for (const probe::HistoryEvent& event : history) {
    if (event.verb == probe::verbs::kLanded && event.version != 0) ++landed;
  }
  story.counts = {{"operations", found.operations},
                  {"outcome unknown", found.unknown},
                  {"grants", grants},
                  {"writes accepted", writes["accepted"]},
                  {"writes in the targets", landed},
                  {"stale writes attempted and refused", writes["stale"]},
                  {"writes refused for another cause", writes["refused"]},
                  {"writes whose outcome is unknown", writes["unknown"]},
                  {"resources whose order was found", found.searched},
                  {"resources with too many orders to try", found.given_up},
                  {"violations", found.violations.size()}};
  story.faults = {{"processes stopped, for less than the ttl", conductor.faults().stops},
                  {"processes stopped past the ttl", conductor.faults().long_stops},
                  {"processes killed", conductor.faults().kills}};
  if (conductor.net()) {
    const TortureNet::Struck struck = conductor.net()->struck();
    story.faults.emplace_back("answers lost", struck.answers);
    story.faults.emplace_back("requests lost", struck.requests);
    story.faults.emplace_back("all connections cut", struck.cuts);
  }
  for (const probe::Violation& one : found.violations) {
    story.violations.push_back(
        {cat("invariant ", one.invariant, " (", one.name, "): ", one.why), one.operations});
  }
  for (int i = 0; i < plan.resources; ++i) {
    story.lanes.push_back(
        lane_of(probe::resource_of(plan, i), history, conductor.began(), conductor.length()));
  }
  return story;
}

}  // namespace

Result<report::TortureStory> torture_store(const OpenOptions& options,
                                           const Environment& environment, const Clock& clock,
                                           Random& random, os::Signals& signals,
                                           const TortureRequest& request) {
  // Its processes would each have a store of their own, or none at all, and nothing would be tried.
  if (options.url.scheme == "memory" || options.url.scheme == "log") {
    return invalid(cat("torture plays with many processes, and a ", options.url.scheme,
                       ": store belongs to one at a time: name one that they can share"));
  }
  auto store = open_known_store(options, clock);
  if (!store) return store.error();
  const store::Capabilities can = (*store)->capabilities();
  auto folder = os::TempFolder::make("stint-torture-");
  if (!folder) return folder.error();
  probe::TorturePlan plan;
  plan.prefix = cat("torture-", random.id_hex().substr(0, 8), "-");
  plan.resources = std::max(2, request.clients / 2);
  // Short, so that it runs out often; as long as the store needs.
  plan.ttl = std::max(Millis(500), can.smallest_ttl);
  request.say(cat("writes records of its own to ", options.url.printable, ", named ", plan.prefix,
                  "0 to ", plan.prefix, plan.resources - 1, ", and removes them at the end; ",
                  request.clients, " processes for ", format_duration(request.length)));
  auto net = TortureNet::start(options.url);
  if (!net) return net.error();
  Conductor conductor(options, environment, clock, random, signals, request, plan, folder->path(),
                      std::move(*net));
  const Status done = conductor.run();
  if (auto removed = remove_records(**store, plan); !removed) {
    request.say(cat("its records named ", plan.prefix,
                    "... could not be removed: ", removed.error().message));
  }
  if (!done) return done.error();
  auto text = os::read_file(cat(folder->path(), "/history"), kMostHistoryBytes);
  if (!text) return text.error();
  auto history = probe::parse_history(*text);
  if (!history) return history.error();
  if (auto seen = observe_targets(folder->path(), plan, *history); !seen) return seen.error();
  report::TortureStory story = story_of(*history, plan, can, conductor);
  story.store = options.url.printable;
  story.at = clock.wall();
  return story;
}

}  // namespace stint::app
