#include "app/opened.h"

#include <algorithm>

#include "app/modules.h"
#include "app/zones.h"
#include "base/text.h"
#include "client/client.h"
#include "client/doctor.h"
#include "os/pause.h"
#include "queue/dir_queue.h"
#include "service/fence_service.h"
#include "service/key_service.h"
#include "service/lease_service.h"
#include "service/ledger.h"
#include "service/once_records.h"
#include "service/queue_service.h"
#include "service/slot_service.h"
#include "service/watched_store.h"
#include "store/dir/dir_store.h"
#include "store/log/log_store.h"
#include "store/memory/memory_store.h"
#include "store/sqlite/sqlite_store.h"
#include "store/troubled.h"

namespace stint::app {

bool is_server(const StoreUrl& url) { return url.scheme == "http" || url.scheme == "https"; }

namespace {

constexpr Millis kDefaultTimeout{5000};
constexpr Millis kLongestWaitForALog{1000};
constexpr std::size_t kDefaultKeptEvents = 100'000;

std::optional<std::string> option(const StoreUrl& url, const std::string& name) {
  const auto found = url.options.find(name);
  if (found == url.options.end()) return std::nullopt;
  return found->second;
}

struct UrlOptions {
  Millis timeout = kDefaultTimeout;
  std::optional<Generation> pinned;
  std::size_t keep_events = kDefaultKeptEvents;
};

Result<UrlOptions> url_options(const StoreUrl& url) {
  UrlOptions out;
  if (const auto text = option(url, "timeout")) {
    auto timeout = parse_duration(*text);
    if (!timeout) return timeout.error();
    out.timeout = *timeout;
  }
  if (const auto text = option(url, "generation")) {
    auto generation = Generation::parse(*text);
    if (!generation) return generation.error();
    out.pinned = *generation;
  }
  if (const auto text = option(url, "keep_events")) {
    const auto number = parse_digits(*text);
    if (!number || *number == 0) return invalid("keep_events is a whole number above zero");
    out.keep_events = *number;
  }
  return out;
}

Result<std::unique_ptr<store::Store>> open_directory(const StoreUrl& url, const UrlOptions& parsed,
                                                     const Clock& clock, bool may_create,
                                                     bool accept_copy) {
  store::DirOptions dir;
  dir.path = url.path;
  dir.timeout = parsed.timeout;
  dir.may_create = may_create;
  dir.accept_copy = accept_copy;
  if (const auto text = option(url, "poll")) {
    auto poll = parse_duration(*text);
    if (!poll) return poll.error();
    dir.poll = *poll;
  }
  if (const auto text = option(url, "view")) {
    if (*text != "on" && *text != "off") return invalid("view is on or off");
    dir.readable = *text == "on";
  }
  auto store = store::DirStore::open(dir, clock);
  if (!store) return store.error();
  return std::unique_ptr<store::Store>(std::move(*store));
}

// Leaves `out` as it is where the URL says nothing.
Status read_kilobytes(const StoreUrl& url, const std::string& name, std::uint64_t least,
                      std::uint64_t& out) {
  const auto text = option(url, name);
  if (!text) return {};
  constexpr std::uint64_t kKilobyte = 1024;
  constexpr std::uint64_t kMost = 1U << 20U;
  const auto number = parse_digits(*text);
  if (!number || *number > kMost || *number * kKilobyte < least) {
    return invalid(cat(name, " is a whole number from ", least / kKilobyte, " to ", kMost));
  }
  out = *number * kKilobyte;
  return {};
}

Result<std::unique_ptr<store::Store>> open_log(const StoreUrl& url, const UrlOptions& parsed,
                                               const Clock& clock, bool may_create,
                                               bool accept_copy) {
  store::LogOptions options;
  options.path = url.path;
  options.clock_name = os::clock_name();
  // A server that has it will not let go of it.
  options.busy = std::min(parsed.timeout, kLongestWaitForALog);
  options.may_create = may_create;
  options.accept_copy = accept_copy;
  if (auto ok = read_kilobytes(url, "segment_kb", store::LogOptions::kSmallestSegment,
                               options.segment_size);
      !ok) {
    return ok.error();
  }
  if (auto ok = read_kilobytes(url, "snapshot_kb", 1024, options.snapshot_after); !ok) {
    return ok.error();
  }
  auto store = store::LogStore::open(options, clock);
  if (!store) return store.error();
  return std::unique_ptr<store::Store>(std::move(*store));
}

Result<std::unique_ptr<store::Store>> open_by(const OpenOptions& options, const UrlOptions& parsed,
                                              const Clock& clock, bool accept_copy) {
  const StoreUrl& url = options.url;
  // Who names the generation means a store that is there.
  const bool may_create = options.may_create && !parsed.pinned;
  if (url.scheme == "memory") {
    return std::unique_ptr<store::Store>(std::make_unique<store::MemoryStore>(clock));
  }
  if (is_server(url)) {
    return invalid(cat("this needs the store itself, and ", url.printable,
                       " is a server: run it where the server runs, on the server's store"));
  }
  if (!url.module.empty()) {
    return open_module_store(
        url.module,
        {.address = url, .timeout = parsed.timeout, .may_create = may_create, .key = options.key},
        clock);
  }
  if (url.scheme == "dir") return open_directory(url, parsed, clock, may_create, accept_copy);
  if (url.scheme == "log") return open_log(url, parsed, clock, may_create, accept_copy);
  const store::SqliteOptions sqlite{.path = url.path,
                                    .clock_name = os::clock_name(),
                                    .busy = parsed.timeout,
                                    .may_create = may_create,
                                    .accept_copy = accept_copy};
  auto store = store::SqliteStore::open(sqlite, clock);
  if (!store) return store.error();
  return std::unique_ptr<store::Store>(std::move(*store));
}

}  // namespace

namespace {

Result<core::Zone> zone_by_name(const std::string& zone) {
  return find_zone(zone, Environment({}));
}

}  // namespace

std::unique_ptr<AnchorFile> anchor_file(const OpenOptions& options) {
  if (options.state_directory.empty() || options.url.scheme == "memory") return nullptr;
  return std::make_unique<AnchorFile>(options.state_directory, options.url.identity());
}

Result<std::unique_ptr<Opened>> Opened::open(const OpenOptions& options, const Clock& clock,
                                             Random& random) {
  if (is_server(options.url)) {
    std::unique_ptr<Opened> opened(new Opened());
    if (auto connected = opened->connect(options, clock, random); !connected) {
      return connected.error();
    }
    return opened;
  }
  auto store = open_store(options, clock);
  if (!store) return store.error();
  return open_on(std::move(*store), options, clock, random);
}

Result<std::unique_ptr<Opened>> Opened::open_on(std::unique_ptr<store::Store> store,
                                                const OpenOptions& options, const Clock& clock,
                                                Random& random) {
  auto parsed = url_options(options.url);
  if (!parsed) return parsed.error();
  std::unique_ptr<Opened> opened(new Opened());
  opened->store_ = std::move(store);
  opened->anchors_ = anchor_file(options);
  if (!opened->anchors_) opened->anchors_ = std::make_unique<AnchorFile>();
  opened->watched_ = service::watch_over(*opened->store_, *opened->anchors_);
  store::Store& watched = *opened->watched_;
  auto life = service::begin_life(watched, random, clock.wall(), opened->anchors_.get(),
                                  {.pinned = parsed->pinned, .may_create = options.may_create});
  if (!life) return life.error();
  opened->watched_->begun([bare = opened->store_.get(), &clock](const std::string& why) {
    api::Event event;
    event.at = clock.wall();
    event.kind = "store_went_back";
    event.details.emplace_back("why", why);
    (void)bare->commit({service::append_event(event)}, store::Sync::Relaxed);
  });
  opened->ledger_ = std::make_unique<service::Ledger>(watched, clock, parsed->keep_events);
  opened->leases_ = std::make_unique<service::LeaseService>(watched, *opened->ledger_, *life, clock,
                                                            random, opened->anchors_.get());
  opened->fences_ = std::make_unique<service::FenceService>(watched, clock);
  opened->make_queue_ = [made = opened.get(), url = options.url, &clock,
                         &random]() -> Result<std::unique_ptr<api::Queue>> {
    // On a mount the queue is plain files that people can see, beside the store's own.
    if (url.scheme == "dir") {
      return std::unique_ptr<api::Queue>(std::make_unique<queue::DirQueue>(
          url.path + "/queues", made->ledger_.get(), clock, random));
    }
    return std::unique_ptr<api::Queue>(
        std::make_unique<service::QueueService>(*made->watched_, *made->ledger_, clock, random));
  };
  opened->slots_ =
      std::make_unique<service::SlotService>(watched, *opened->ledger_, clock, zone_by_name);
  opened->keys_ = std::make_unique<service::KeyService>(watched, clock, random, std::nullopt,
                                                        opened->anchors_.get());
  opened->answers_ = std::make_unique<service::OnceService>(watched, clock);
  opened->make_keeping_ = [made = opened.get(), &clock, &random](const api::Once& once) {
    store::Store& all = *made->watched_;
    return api::Keeping{
        .fences = std::make_unique<service::FenceService>(all, clock, once),
        .events = std::make_unique<service::KeptEvents>(*made->ledger_, once),
        .keys =
            std::make_unique<service::KeyService>(all, clock, random, once, made->anchors_.get()),
        .slots =
            std::make_unique<service::SlotService>(all, *made->ledger_, clock, zone_by_name, once),
        .forget = [made, once](const ResourceName& r) { return made->leases_->forget(r, once); }};
  };
  return opened;
}

api::Keeping Opened::keeping(const api::Once& once) { return make_keeping_(once); }

Result<api::Queue*> Opened::queue() {
  if (client_) return &client_->queue();
  if (!queue_) {
    auto made = make_queue_();
    if (!made) return made.error();
    queue_ = std::move(*made);
  }
  return queue_.get();
}

Result<std::unique_ptr<store::Store>> open_store(const OpenOptions& options, const Clock& clock) {
  auto parsed = url_options(options.url);
  if (!parsed) return parsed.error();
  return open_by(options, *parsed, clock, false);
}

Status check_known(store::Store& store, const OpenOptions& options) {
  auto parsed = url_options(options.url);
  if (!parsed) return parsed.error();
  const auto anchors = anchor_file(options);
  return service::check_life(store, anchors.get(),
                             {.pinned = parsed->pinned, .may_create = options.may_create});
}

Result<std::unique_ptr<store::Store>> open_known_store(const OpenOptions& options,
                                                       const Clock& clock) {
  auto store = open_store(options, clock);
  if (!store) return store;
  if (auto known = check_known(**store, options); !known) return known.error();
  return store;
}

namespace {

Result<client::ConnectRequest> connect_request(const OpenOptions& options, Random& random) {
  auto parsed = url_options(options.url);
  if (!parsed) return parsed.error();
  return client::ConnectRequest{.address = options.url,
                                .timeout = parsed->timeout,
                                .key = options.key,
                                .pinned = parsed->pinned,
                                .random = &random};
}

}  // namespace

Status examine_through_server(const OpenOptions& options, const Clock& clock, Random& random,
                              const std::function<void(const client::ToldFinding&)>& tell) {
  auto request = connect_request(options, random);
  if (!request) return request.error();
  // Once as everybody: who pinned a generation learns whether this is that store.
  if (auto client = connect_by_module(*request, clock); !client) return client.error();
  return ask_doctor_by_module(
      {.server = *request, .tell = tell, .pause = [](Nanos length) { os::pause_for(length); }},
      clock);
}

Status Opened::connect(const OpenOptions& options, const Clock& clock, Random& random) {
  auto request = connect_request(options, random);
  if (!request) return request.error();
  auto client = connect_by_module(*request, clock);
  if (!client) return client.error();
  client_ = std::move(*client);
  return {};
}

Opened::~Opened() = default;

void Opened::leave(std::unique_ptr<Opened> opened) {
  if (!opened || !opened->store_ || !opened->store_->capabilities().may_be_left) return;
  opened->flush();
  // Not lost, for who looks for what is: written for good, although nobody reads it.
  [[maybe_unused]] static Opened* volatile left = nullptr;
  left = opened.release();
}

api::Leases& Opened::leases() {
  if (client_) return client_->leases();
  return *leases_;
}
api::Events& Opened::events() {
  if (client_) return client_->events();
  return *ledger_;
}
api::Fences& Opened::fences() {
  if (client_) return client_->fences();
  return *fences_;
}
api::Keys& Opened::keys() {
  if (client_) return client_->keys();
  return *keys_;
}
api::BatchedLeases* Opened::batch() {
  return leases_ && leases_->batches() ? leases_.get() : nullptr;
}
api::Slots& Opened::slots() {
  if (client_) return client_->slots();
  return *slots_;
}
api::KeptAnswers* Opened::answers() { return answers_.get(); }
std::string Opened::caveat() const {
  if (client_) return client_->caveat();
  const store::Capabilities& can = store_->capabilities();
  return can.durable && !can.failover_loses ? "" : can.may_lose;
}
std::string Opened::trouble() const {
  if (client_) return {};
  std::string words = watched_->trouble();
  const auto* store = dynamic_cast<const store::Troubled*>(store_.get());
  return words.empty() && store != nullptr ? store->trouble() : words;
}
// The server writes what it counts by itself.
void Opened::flush() {
  if (ledger_) ledger_->flush();
}
Result<std::string> Opened::sweep(const std::string& after) {
  if (client_) return std::string();
  return service::sweep_once(*watched_, after);
}

Result<Accepted> accept_restored(const OpenOptions& options, const Clock& clock, Random& random,
                                 const AcceptRestored& word) {
  auto parsed = url_options(options.url);
  if (!parsed) return parsed.error();
  auto store = open_by(options, *parsed, clock, true);
  if (!store) return store.error();
  const auto anchors = anchor_file(options);
  // Before anybody may use it again.
  service::KeysSince keys;
  if (anchors) {
    auto since = service::settle_keys(**store, clock, random, *anchors, word.by, !word.keep_keys);
    if (!since) return since.error();
    keys = std::move(*since);
  }
  auto life = service::recover(**store, random, clock.wall(), anchors.get(),
                               {.why = word.why, .by = word.by, .past = word.past});
  if (!life) return life.error();
  return Accepted{life->meta.generation, life->meta.floor, std::move(keys.revoked),
                  std::move(keys.gone)};
}

}  // namespace stint::app
