#include <array>

#include "app/demo_work.h"
#include "base/text.h"

namespace stint::app {

struct DemoShelf {
  std::string_view name;
  std::string_view payload;  // # is its number
  int every;                 // milliseconds between two items, while the wave is high
  std::size_t most;          // nothing is put while so many wait
  core::ItemLimits limits;
};

enum class DemoWorking { Steady, Failing, Freezing };

struct DemoWorker {
  std::size_t shelf;
  std::string_view owner;
  std::string_view unit;  // of its checkpoints
  DemoWorking manner;
  int pace;   // milliseconds between two checkpoints
  int steps;  // of one item
};

namespace {

const std::array kDemoShelves = {
    DemoShelf{"mail",
              R"({"to":"reader-#@example.org","template":"digest"})",
              1000,
              40,
              {.max_attempts = 3,
               .claim_ttl = Millis(6000),
               .requeue = core::Requeue::Always,
               .backoff = Millis(3000)}},
    DemoShelf{"thumbnails",
              R"({"image":"photos/2026/11/#.jpg","sizes":[160,320,640]})",
              450,
              60,
              {.max_attempts = 5, .claim_ttl = Millis(15'000), .requeue = core::Requeue::Always}},
    DemoShelf{"invoices",
              R"({"customer":"C-#","month":"2026-11"})",
              4000,
              12,
              {.max_attempts = 1, .claim_ttl = Millis(30'000), .requeue = core::Requeue::Never}},
};

constexpr std::array kDemoWorkers = {
    DemoWorker{0, "mailer-1", "recipient", DemoWorking::Steady, 500, 5},
    DemoWorker{0, "mailer-2", "recipient", DemoWorking::Failing, 600, 4},
    DemoWorker{0, "mailer-3", "recipient", DemoWorking::Freezing, 700, 6},
    DemoWorker{1, "gpu-1", "size", DemoWorking::Steady, 250, 3},
    DemoWorker{1, "gpu-2", "size", DemoWorking::Steady, 300, 3},
    DemoWorker{2, "billing-1", "line", DemoWorking::Failing, 900, 6},
};

constexpr std::size_t kKeptFinished = 300;

}  // namespace

struct DemoQueues::Shelf {
  Shelf(const DemoShelf& told, core::QueueName named) : role(told), name(std::move(named)) {}
  const DemoShelf& role;
  core::QueueName name;
  MonoTime next{};
  int count = 100;
};

struct DemoQueues::Worker {
  Worker(const DemoWorker& told, const core::QueueName& from, Owner who)
      : role(told), queue(from), owner(std::move(who)) {}
  const DemoWorker& role;
  const core::QueueName& queue;
  Owner owner;
  std::optional<api::ItemRef> item = {};
  MonoTime next{};
  int done = 0;
  int count = 0;
  bool frozen = false;
};

DemoQueues::DemoQueues(api::Queue& queue, const Clock& clock, Random& random)
    : queue_(queue), clock_(clock), random_(random) {
  for (const DemoShelf& role : kDemoShelves) {
    auto name = core::QueueName::parse(role.name);
    if (!name || !queue_.configure({.name = *name, .limits = role.limits})) return;
    shelves_.push_back(std::make_unique<Shelf>(role, *name));
  }
  for (const DemoWorker& role : kDemoWorkers) {
    auto owner = Owner::parse(role.owner);
    if (!owner) continue;
    workers_.push_back(std::make_unique<Worker>(role, shelves_[role.shelf]->name, *owner));
  }
  // Something to look at from the first moment on.
  constexpr int kAtFirst = 8;
  for (const auto& shelf : shelves_) {
    for (int i = 0; i < kAtFirst; ++i) produce(*shelf);
  }
}

DemoQueues::~DemoQueues() = default;

void DemoQueues::step() {
  const MonoTime now = clock_.mono();
  for (const auto& shelf : shelves_) {
    if (now >= shelf->next) produce(*shelf);
  }
  for (const auto& worker : workers_) {
    if (now < worker->next) continue;
    if (worker->item) {
      work(*worker);
    } else {
      claim(*worker);
    }
  }
  clear_away();
}

// In waves of forty seconds, so that there is a depth to look at.
void DemoQueues::produce(Shelf& shelf) {
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(clock_.mono().time_since_epoch()).count();
  const bool low = seconds / 20 % 2 == 0;
  const auto every = static_cast<std::uint64_t>(shelf.role.every) * (low ? 3 : 1);
  shelf.next = clock_.mono() + Millis(static_cast<std::int64_t>(every / 2 + random_.below(every)));
  const auto waiting = queue_.count(shelf.name);
  if (!waiting || waiting->waiting >= shelf.role.most) return;
  std::string payload(shelf.role.payload);
  payload.replace(payload.find('#'), 1, std::to_string(++shelf.count));
  constexpr int kEveryUrgent = 10;
  (void)queue_.put({.queue = shelf.name,
                    .payload = payload,
                    .priority = shelf.count % kEveryUrgent == 0 ? 10 : 0,
                    .unique = {},
                    .labels = {shelf.count % 2 == 0 ? "eu" : "us"},
                    .by = "shop",
                    .limits = std::nullopt});
}

void DemoQueues::claim(Worker& worker) {
  worker.next = clock_.mono() + Millis(worker.role.pace);
  auto answer = queue_.claim({.queue = worker.queue,
                              .owner = worker.owner,
                              .claim = Claim::make(random_),
                              .start = true,
                              .reports = true});
  const auto* got = answer ? std::get_if<api::ClaimedItem>(&*answer) : nullptr;
  if (got == nullptr) return;
  worker.item = api::ItemRef{got->item.id, got->item.item.epoch};
  worker.done = 0;
  ++worker.count;
}

void DemoQueues::work(Worker& worker) {
  constexpr int kEveryFreezes = 4;
  worker.next = clock_.mono() + Millis(worker.role.pace);
  const bool freezes =
      worker.role.manner == DemoWorking::Freezing && worker.count % kEveryFreezes == 0;
  if (worker.frozen || worker.done >= worker.role.steps) return end(worker);
  if (freezes && worker.done == 2) {
    // It sleeps past its claim; another is given the item, and then it speaks.
    worker.frozen = true;
    worker.next = clock_.mono() + Millis(12'000);
    return;
  }
  ++worker.done;
  const std::string marker = cat(worker.role.unit, " ", worker.done, " of ", worker.role.steps);
  (void)queue_.renew(*worker.item, Millis(0));
  (void)queue_.checkpoint(*worker.item, marker,
                          cat("{\"", worker.role.unit, "\":", worker.done, "}"));
}

void DemoQueues::end(Worker& worker) {
  constexpr int kEveryFails = 3;
  if (worker.role.manner == DemoWorking::Failing && worker.count % kEveryFails == 0) {
    auto failed = queue_.fail(*worker.item, "the remote side answered 502", std::nullopt);
    const auto* item = failed ? std::get_if<api::ItemDone>(&*failed) : nullptr;
    if (item != nullptr && item->item.item.state == core::ItemState::Failed) {
      finished_.push_back(worker.item->id);
    }
  } else {
    auto done = queue_.complete({.ref = *worker.item, .result = R"({"sent":true})", .then = {}});
    if (done && std::holds_alternative<api::ItemDone>(*done)) finished_.push_back(worker.item->id);
  }
  worker.item.reset();
  worker.frozen = false;
}

void DemoQueues::clear_away() {
  while (finished_.size() > kKeptFinished) {
    core::ItemOrder order;
    order.what = core::ItemOrder::What::Drop;
    order.why = "the demo keeps the newest alone";
    order.by = "demo";
    order.id = random_.id_hex();
    (void)queue_.order(finished_.front(), order);
    finished_.pop_front();
  }
}

}  // namespace stint::app
