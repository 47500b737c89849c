#include "store/etcd/watches.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <vector>

#include "base/text.h"
#include "os/thread.h"
#include "store/etcd/wire.h"

namespace stint::store::etcd {
namespace json = boost::json;
namespace {

constexpr std::size_t kLongestLine = 16U << 20U;
constexpr Millis kPause{200};

// `from` 0: from now on.
std::string create(const KeyRange& keys, std::uint64_t from, bool removals_only) {
  std::string out = cat(R"({"create_request":{"key":")", base64(keys.from), '"');
  if (!keys.end.empty()) out += cat(R"(,"range_end":")", base64(keys.end), '"');
  if (removals_only) out += R"(,"filters":["NOPUT"])";
  return cat(out, R"(,"start_revision":")", from, "\"}}\n");
}

}  // namespace

struct Watches::Shared {
  Mutex mutex;
  std::condition_variable_any changed;
  std::set<Registered*> all GUARDED_BY(mutex);
  std::uint64_t edition GUARDED_BY(mutex) = 0;  // of `all`: a new key was added
  bool closing GUARDED_BY(mutex) = false;
  std::unique_ptr<net::HttpStream> stream GUARDED_BY(mutex);  // the one that runs

  void wake_all() {
    const MutexLock lock(mutex);
    for (Registered* watch : all) watch->event.signal();
  }
};

class Watches::WakeUp final : public Watch {
 public:
  WakeUp(std::shared_ptr<Shared> shared, std::string_view key, std::uint64_t revision)
      : shared_(std::move(shared)) {
    registered_.key = key;
    const MutexLock lock(shared_->mutex);
    const bool known = std::ranges::any_of(
        shared_->all, [&](const Registered* other) { return other->key == key; });
    registered_.seen.fill(revision);
    shared_->all.insert(&registered_);
    if (known) return;
    // The stream is opened anew, with this one; each of the others goes on where it was.
    ++shared_->edition;
    if (shared_->stream) shared_->stream->stop();
    shared_->changed.notify_all();
  }
  ~WakeUp() override {
    const MutexLock lock(shared_->mutex);
    shared_->all.erase(&registered_);
    // Nobody is left: the stream ends with the last one.
    if (!shared_->all.empty()) return;
    ++shared_->edition;
    if (shared_->stream) shared_->stream->stop();
  }
  WakeUp(const WakeUp&) = delete;
  WakeUp& operator=(const WakeUp&) = delete;

  int fd() const override { return registered_.event.fd(); }
  void acknowledge() override { registered_.event.drain(); }

 private:
  std::shared_ptr<Shared> shared_;
  Registered registered_;
};

// One life of the stream.
struct Watches::Round {
  std::uint64_t edition = 0;
  std::uint64_t from = 0;             // nothing lower is to be told of
  std::vector<std::string> keys;      // in the order in which they were asked for
  net::HttpStream* stream = nullptr;  // owned by Shared; only the loop's thread replaces it
  bool failed = false;                // the one before ended unasked
  std::string line;                   // what has come of the next one
};

Watches::Watches(const Keys& keys, Gateway& gateway, net::HttpClient& http, const Clock& clock,
                 Millis timeout)
    : keys_(keys),
      gateway_(gateway),
      http_(http),
      clock_(clock),
      timeout_(timeout),
      shared_(std::make_shared<Shared>()) {}

Watches::~Watches() {
  {
    const MutexLock lock(shared_->mutex);
    shared_->closing = true;
    if (shared_->stream) shared_->stream->stop();
    shared_->changed.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

Result<std::unique_ptr<Watch>> Watches::watch(std::string_view key, std::uint64_t revision) {
  auto made = std::make_unique<WakeUp>(shared_, key, revision);
  const MutexLock lock(shared_->mutex);
  if (!thread_.joinable()) {
    auto started = os::start_thread("stint-watches", "watch the store", [this] { loop(); });
    if (!started) return started.error();
    thread_ = std::move(*started);
  }
  return std::unique_ptr<Watch>(std::move(made));
}

// The end of a timer is looked at too: who waits for a lease need not ask again and again in its
// last second.
std::string Watches::begin(Round& round) {
  struct Wanted {
    Revisions seen;
    bool fresh;
  };
  std::map<std::string, Wanted> wanted;
  {
    MutexLock lock(shared_->mutex);
    shared_->changed.wait(lock, [this]() NO_THREAD_SAFETY_ANALYSIS {
      return shared_->closing || !shared_->all.empty();
    });
    if (shared_->closing) return {};
    for (const Registered* watch : shared_->all) {
      const auto [at, first] = wanted.emplace(watch->key, Wanted{watch->seen, watch->fresh});
      at->second.fresh &= watch->fresh;
      for (std::size_t i = 0; !first && i < kPlaces; ++i) {
        at->second.seen[i] = std::min(at->second.seen[i], watch->seen[i]);
      }
    }
    round.edition = shared_->edition;
    shared_->stream = http_.stream();
    round.stream = shared_->stream.get();
  }
  round.from = 0;
  round.line.clear();
  round.keys.clear();
  std::string out;
  for (const auto& [key, found] : wanted) {
    const Wanted& one = found;
    const auto from = [&](std::size_t place) { return one.fresh ? 0 : one.seen[place] + 1; };
    for (const std::uint64_t seen : one.seen) round.from = std::max(round.from, seen + 1);
    round.keys.push_back(key);
    out += create({keys_.record(key)}, from(0), false);
    out += create(keys_.appended(key), from(1), false);
    out += create({keys_.timer_end(key)}, from(2), true);
  }
  return out;
}

void Watches::loop() {
  Round round;
  while (true) {
    const std::string body = begin(round);
    if (body.empty()) return;
    listen(body, round);
    bool asked = false;
    {
      const MutexLock lock(shared_->mutex);
      shared_->stream.reset();
      if (shared_->closing) return;
      asked = shared_->edition != round.edition;
    }
    if (asked) continue;
    round.failed = true;
    gateway_.stream_failed();
    pause();
  }
}

void Watches::pause() {
  MutexLock lock(shared_->mutex);
  shared_->changed.wait_for(lock, kPause,
                            [this]() NO_THREAD_SAFETY_ANALYSIS { return shared_->closing; });
}

void Watches::listen(const std::string& body, Round& round) {
  auto request = gateway_.stream_request("/v3/watch", body, Deadline(clock_, timeout_));
  if (!request) return;
  // However it ended, it is opened anew.
  [[maybe_unused]] const net::HttpOutcome ended =
      round.stream->run(*request, [&](std::string_view piece) { return take(piece, round); });
}

bool Watches::take(std::string_view piece, Round& round) {
  while (!piece.empty()) {
    const std::size_t end = piece.find('\n');
    round.line += piece.substr(0, end);
    if (round.line.size() > kLongestLine) return false;
    if (end == piece.npos) return true;
    piece.remove_prefix(end + 1);
    if (!trim(round.line).empty() && !take_line(round.line, round)) return false;
    round.line.clear();
  }
  return true;
}

// {"result":{"header":{"revision":"7"},"watch_id":"2","created":true | "canceled":true |
// "events":[...]}}; the ids are counted from 0 in the order of the requests.
bool Watches::take_line(std::string_view line, Round& round) {
  boost::system::error_code broken;
  const json::value parsed = json::parse(line, broken);
  const json::value* result =
      !broken && parsed.is_object() ? parsed.get_object().if_contains("result") : nullptr;
  if (result == nullptr || !result->is_object()) return false;
  const json::object& told = result->get_object();
  const auto revision = revision_of(told);
  const auto created = bool_field(told, "created");
  const auto canceled = bool_field(told, "canceled");
  const auto compacted = number_field(told, "compact_revision");
  const auto id = number_field(told, "watch_id");
  if (!revision || !created || !canceled || !compacted || !id) return false;
  // Older than what was seen: the store was restored. There is nothing to wait for at the former
  // place.
  const bool went_back = *revision + 1 < round.from;
  if (*canceled || went_back) {
    const auto compact = static_cast<std::uint64_t>(std::max<std::int64_t>(*compacted, 1));
    start_over(went_back ? *revision : compact - 1, went_back);
    return false;
  }
  if (*created) {
    const auto nth = static_cast<std::size_t>(*id);
    if (nth / kPlaces >= round.keys.size()) return false;
    take_beginning(round.keys[nth / kPlaces], nth % kPlaces, *revision);
    if (std::exchange(round.failed, false)) shared_->wake_all();
    return true;
  }
  const json::value* events = told.if_contains("events");
  if (events == nullptr) return true;
  if (!events->is_array()) return false;
  for (const json::value& one : events->get_array()) {
    const json::value* pair = one.is_object() ? one.get_object().if_contains("kv") : nullptr;
    if (pair == nullptr || !pair->is_object()) return false;
    const auto changed = parse_key_value(pair->get_object());
    if (!changed) return false;
    take_event(*changed);
  }
  return true;
}

// What came in between is not known any more: everybody is to look.
void Watches::start_over(std::uint64_t seen, bool went_back) {
  const MutexLock lock(shared_->mutex);
  for (Registered* watch : shared_->all) {
    for (std::uint64_t& one : watch->seen) one = went_back ? seen : std::max(one, seen);
    watch->event.signal();
  }
}

// The stream delivers one place of the key from here on.
void Watches::take_beginning(const std::string& key, std::size_t place, std::uint64_t revision) {
  const MutexLock lock(shared_->mutex);
  for (Registered* watch : shared_->all) {
    if (watch->key != key || !watch->fresh) continue;
    // What came before it is not told: its owner has to look.
    if (revision > watch->seen[place]) watch->event.signal();
    watch->seen[place] = std::max(watch->seen[place], revision);
    if (place == kPlaces - 1) watch->fresh = false;
  }
}

void Watches::take_event(const KeyValue& changed) {
  const std::array<std::optional<std::string>, kPlaces> places = {
      keys_.record_of(changed.key), keys_.append_prefix_of(changed.key),
      keys_.timer_of(changed.key)};
  const MutexLock lock(shared_->mutex);
  for (Registered* watch : shared_->all) {
    for (std::size_t i = 0; i < kPlaces; ++i) {
      if (places[i] != watch->key) continue;
      watch->seen[i] = std::max(watch->seen[i], changed.modified);
      watch->event.signal();
    }
  }
}

}  // namespace stint::store::etcd
