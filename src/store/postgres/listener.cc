#include "store/postgres/listener.h"

#include <algorithm>

#include "base/text.h"
#include "os/pause.h"
#include "os/thread.h"

namespace stint::store::postgres {
namespace {

constexpr Millis kPollEvery{1000};
constexpr Millis kFirstLook{5};
// A commit that is under way ends soon: a new watch waits this often for that, a moment each.
constexpr int kLooksAtOnce = 10;
constexpr Millis kMoment{2};
constexpr Millis kLeaving{500};

class WakeUp final : public Watch {
 public:
  WakeUp(std::shared_ptr<Watches> watches, std::string_view key) : watches_(std::move(watches)) {
    registered_.key = key;
    const MutexLock lock(watches_->mutex);
    watches_->all.emplace(registered_.key, &registered_);
    watches_->left.erase(registered_.key);
  }
  ~WakeUp() override {
    const MutexLock lock(watches_->mutex);
    const auto [first, last] = watches_->all.equal_range(registered_.key);
    watches_->all.erase(std::find_if(
        first, last, [this](const auto& each) { return each.second == &registered_; }));
    if (!watches_->all.contains(registered_.key)) watches_->left.insert(registered_.key);
  }
  WakeUp(const WakeUp&) = delete;
  WakeUp& operator=(const WakeUp&) = delete;

  int fd() const override { return registered_.event.fd(); }
  void acknowledge() override { registered_.event.drain(); }

 private:
  std::shared_ptr<Watches> watches_;
  Watches::Registered registered_;
};

Connection::Plan plan_of(const Settings& settings) {
  Connection::Plan plan{
      .hosts = settings.hosts, .pooled = false, .relaxed = true, .catalogue_only = true};
  if (settings.listen) plan.hosts = {*settings.listen};
  return plan;
}

}  // namespace

void Watches::wake(std::string_view key) {
  const MutexLock lock(mutex);
  const auto [first, last] = all.equal_range(key);
  for (auto at = first; at != last; ++at) at->second->event.signal();
}

void Watches::wake_all() {
  const MutexLock lock(mutex);
  for (const auto& [key, watch] : all) watch->event.signal();
}

bool Watches::watched(const std::string& key) {
  const MutexLock lock(mutex);
  return all.contains(key);
}

bool Watches::any() {
  const MutexLock lock(mutex);
  return !all.empty();
}

std::set<std::string> Watches::keys() {
  const MutexLock lock(mutex);
  std::set<std::string> out;
  for (const auto& [key, watch] : all) out.insert(key);
  return out;
}

Listener::Listener(const Settings& settings, const Clock& clock, bool may_listen)
    : settings_(settings),
      clock_(clock),
      may_listen_(may_listen),
      plan_(plan_of(settings)),
      mark_{"stint_mark", settings.sql("INSERT INTO $S.waiter VALUES ($1, pg_backend_pid())"
                                       " ON CONFLICT DO NOTHING")},
      unmark_{"stint_unmark",
              settings.sql("DELETE FROM $S.waiter WHERE key = $1 AND pid = pg_backend_pid()")},
      unmark_all_{"", settings.sql("DELETE FROM $S.waiter WHERE pid = pg_backend_pid()")},
      watches_(std::make_shared<Watches>()) {}

Listener::~Listener() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  control_.signal();
  if (thread_.joinable()) thread_.join();
}

Result<std::unique_ptr<Watch>> Listener::watch(std::string_view key) {
  auto out = std::make_unique<WakeUp>(watches_, key);
  Request request{.key = std::string(key), .done = false, .error = std::nullopt};
  {
    MutexLock lock(mutex_);
    if (!started_) {
      auto started = os::start_thread("stint-listener", "watch the store", [this] { run(); });
      if (!started) return started.error();
      thread_ = std::move(*started);
      started_ = true;
    }
    requests_.push_back(&request);
    control_.signal();
    while (!request.done) answered_.wait(lock);
  }
  if (request.error) return *request.error;
  return std::unique_ptr<Watch>(std::move(out));
}

void Listener::answer(Request& request, Status status) {
  {
    const MutexLock lock(mutex_);
    if (!status) request.error = status.error();
    request.done = true;
  }
  answered_.notify_all();
}

void Listener::run() {
  while (true) {
    {
      const MutexLock lock(mutex_);
      if (stopping_) break;
    }
    std::vector<int> fds = {control_.fd()};
    if (conn_) fds.push_back(conn_->fd());
    std::optional<MonoTime> until;
    if (!may_listen_ || !pending_.empty() || (!conn_ && watches_->any())) until = next_look();
    os::wait_readable(fds, until);
    control_.drain();
    serve_requests();
    if (!may_listen_) {
      if (clock_.mono() < next_look()) continue;
      looked_ = clock_.mono();
      watches_->wake_all();
      continue;
    }
    drop_left();
    if (clock_.mono() >= next_look()) look_at_pending();
    // Last, and until there is nothing more: what arrived together with an answer does not make the
    // descriptor readable again.
    while (hear()) {
    }
  }
  leave();
}

MonoTime Listener::next_look() const { return looked_ + (may_listen_ ? pace_ : kPollEvery); }

void Listener::serve_requests() {
  while (true) {
    Request* request = nullptr;
    {
      const MutexLock lock(mutex_);
      if (requests_.empty()) return;
      request = requests_.front();
      requests_.pop_front();
    }
    if (!may_listen_) {
      answer(*request, {});
      continue;
    }
    Status status;
    // A connection that was lost unnoticed is made anew once.
    for (int i = 0; i < 2; ++i) {
      status = conn_ ? Status() : connect();
      if (status) status = mark(request->key);
      if (status || conn_) break;
    }
    answer(*request, status);
  }
}

Status Listener::connect() {
  const MonoTime until = clock_.mono() + settings_.timeout;
  auto opened = Connection::open(settings_, plan_, clock_, until);
  if (!opened) return opened.error();
  conn_ = std::move(*opened);
  // The channel is the process's own: nobody hears what is not for him.
  auto heard =
      conn_->run_script("DO $$ BEGIN EXECUTE 'LISTEN stint_' || pg_backend_pid(); END $$", until);
  if (!heard) {
    conn_.reset();
    return heard.error().error;
  }
  marked_.clear();
  pending_.clear();
  for (const std::string& key : watches_->keys()) {
    if (auto marked = mark(key); !marked) return marked;
  }
  return {};
}

// What the server says: a number of our own if one is to be drawn, and the lowest that is under
// way.
Result<std::pair<std::int64_t, std::int64_t>> Listener::ask_numbers(bool draw) {
  const Statement ask = draw ? Statement{"stint_draw",
                                         "SELECT txid_current(),"
                                         " txid_snapshot_xmin(txid_current_snapshot())"}
                             : Statement{"stint_horizon",
                                         "SELECT 0::bigint,"
                                         " txid_snapshot_xmin(txid_current_snapshot())"};
  auto rows = conn_->run(ask, Params(), clock_.mono() + settings_.timeout);
  if (!rows) return rows.error().error;
  const auto own = rows->bigint(0, 0);
  const auto lowest = rows->bigint(0, 1);
  if (!own) return own.error();
  if (!lowest) return lowest.error();
  return std::pair(*own, *lowest);
}

Status Listener::mark(const std::string& key) {
  if (marked_.contains(key)) return {};
  auto marked = conn_->run(mark_, Params().bytes(key), clock_.mono() + settings_.timeout);
  if (!marked) {
    const Error error = marked.error().error;
    if (conn_->broken()) lose();
    return error;
  }
  marked_.insert(key);
  auto numbers = ask_numbers(true);
  const std::int64_t own = numbers ? numbers->first : 0;
  for (int i = 0; numbers && numbers->second < own && i < kLooksAtOnce; ++i) {
    os::pause_for(kMoment);
    numbers = ask_numbers(false);
  }
  if (!numbers) {
    lose();
    return numbers.error();
  }
  if (numbers->second < own) {
    pending_[key] = std::max(pending_[key], own);
    pace_ = kFirstLook;
    looked_ = clock_.mono();
  }
  return {};
}

// Whether there was something.
bool Listener::hear() {
  if (!conn_) return false;
  const auto heard = conn_->notifications();
  for (const Notification& each : heard) {
    const auto parts = split(each.payload, ' ');
    const auto key = parts.size() == 2 ? from_hex(parts[0]) : std::nullopt;
    const auto writer = parts.size() == 2 ? parse_digits(parts[1]) : std::nullopt;
    if (!key || !writer || *writer > INT64_MAX - 1) {
      watches_->wake_all();  // not ours; but who knows what it was to say
      continue;
    }
    watches_->wake(*key);
    if (!marked_.contains(*key)) continue;
    pending_[*key] = std::max(pending_[*key], static_cast<std::int64_t>(*writer) + 1);
  }
  if (conn_->broken()) {
    lose();
    return false;
  }
  if (heard.empty() || pending_.empty()) return !heard.empty();
  // Mostly nobody older is under way any more, and that is that.
  auto numbers = ask_numbers(false);
  if (!numbers) {
    lose();
    return false;
  }
  std::erase_if(pending_, [&](const auto& each) { return each.second <= numbers->second; });
  pace_ = kFirstLook;
  looked_ = clock_.mono();
  return true;
}

void Listener::drop_left() {
  std::set<std::string> left;
  {
    const MutexLock lock(watches_->mutex);
    left.swap(watches_->left);
  }
  for (const std::string& key : left) {
    if (!conn_ || !marked_.contains(key) || watches_->watched(key)) continue;
    if (!conn_->run(unmark_, Params().bytes(key), clock_.mono() + settings_.timeout)) {
      if (conn_->broken()) return lose();
    }
    marked_.erase(key);
    pending_.erase(key);
  }
}

void Listener::look_at_pending() {
  if (!conn_ && watches_->any()) {
    looked_ = clock_.mono();
    pace_ = kPollEvery;
    watches_->wake_all();
    // Back, all look again: what was said meanwhile is lost. Not back: the next time, again.
    if (connect()) watches_->wake_all();
    return;
  }
  if (!conn_ || pending_.empty()) return;
  auto numbers = ask_numbers(false);
  if (!numbers) return lose();
  for (auto at = pending_.begin(); at != pending_.end();) {
    watches_->wake(at->first);
    at = at->second <= numbers->second ? pending_.erase(at) : std::next(at);
  }
  looked_ = clock_.mono();
  pace_ = std::min(pace_ * 2, kPollEvery);
}

void Listener::lose() {
  conn_.reset();
  pending_.clear();
  pace_ = kFirstLook;
  looked_ = clock_.mono();
  watches_->wake_all();
}

// The marks go, so that nobody is notified in vain.
void Listener::leave() {
  if (!conn_ || marked_.empty()) return;
  [[maybe_unused]] const bool gone =
      conn_->run(unmark_all_, Params(), clock_.mono() + kLeaving).has_value();
}

}  // namespace stint::store::postgres
