#include "app/demo.h"

#include <array>

#include "base/text.h"
#include "os/pause.h"

namespace stint::app {
namespace {

// How a run of the demo behaves.
enum class DemoManner {
  Steady,  // renews, reports, releases
  Frozen,  // stops renewing in the middle; wakes up late and tries to write
  Wedged,  // renews for ever and reports nothing more
  Waved,   // asks for what another holds
  Silent,  // reports no progress at all
  Token0,  // also writes where a token is needed, without one
};

struct DemoRole {
  std::string_view resource;
  std::string_view owner;
  std::string_view note;
  std::string_view unit;  // of its progress
  DemoManner manner;
  int ttl;     // seconds
  int length;  // of a run, about
  int rest;    // between two runs, about
  std::string_view target;
};

constexpr std::array kDemoRoles = {
    DemoRole{"agents/inbox/triage", "triage-7", "sorting 212 messages", "message",
             DemoManner::Steady, 30, 24, 4, ""},
    DemoRole{"agents/review/pr-1421", "reviewer-2", "reading the diff of #1421", "file",
             DemoManner::Steady, 30, 16, 9, ""},
    DemoRole{"agents/review/pr-1433", "reviewer-5", "waiting for a model's answer", "file",
             DemoManner::Wedged, 10, 100000, 0, ""},
    DemoRole{"agents/summaries/weekly", "writer-1", "week 46", "section", DemoManner::Steady, 20,
             12, 6, ""},
    DemoRole{"backup/db/main", "backup-a", "pg_dump main", "table", DemoManner::Steady, 60, 48, 10,
             ""},
    DemoRole{"backup/db/main", "backup-b", "pg_dump main", "table", DemoManner::Waved, 60, 1, 22,
             ""},
    DemoRole{"backup/files/home", "backup-c", "", "", DemoManner::Silent, 90, 70, 12, ""},
    DemoRole{"data/warehouse/load", "loader-1", "orders 2026-11", "batch", DemoManner::Steady, 45,
             30, 5, ""},
    DemoRole{"data/warehouse/vacuum", "loader-2", "", "", DemoManner::Silent, 30, 9, 20, ""},
    DemoRole{"data/search/index", "indexer-1", "shard 3 of 8", "document", DemoManner::Frozen, 5,
             14, 3, "file:/srv/search/shard-3.idx"},
    DemoRole{"data/search/index", "indexer-2", "shard 3 of 8", "document", DemoManner::Steady, 5, 9,
             5, "file:/srv/search/shard-3.idx"},
    DemoRole{"deploy/prod", "ci/4711", "release 2026.46.1", "step", DemoManner::Steady, 60, 40, 20,
             ""},
    DemoRole{"deploy/prod", "ci/4712", "release 2026.46.2", "step", DemoManner::Waved, 60, 1, 30,
             ""},
    DemoRole{"deploy/staging", "ci/4709", "branch page", "step", DemoManner::Steady, 30, 11, 7, ""},
    DemoRole{"mail/digest", "digest-eu", "", "recipient", DemoManner::Steady, 20, 15, 6, ""},
    DemoRole{"ml/ranker/train", "gpu-3", "epoch 12 of 40", "step", DemoManner::Steady, 60, 100000,
             0, ""},
    DemoRole{"ml/ranker/evaluate", "gpu-1", "", "batch", DemoManner::Steady, 30, 14, 12, ""},
    DemoRole{"site/blog/publish", "nightly-a", "publishing 3 posts", "page", DemoManner::Frozen, 4,
             12, 4, "git:origin/main"},
    DemoRole{"site/blog/publish", "nightly-b", "publishing 3 posts", "page", DemoManner::Steady, 4,
             10, 4, "git:origin/main"},
    DemoRole{"site/docs/build", "builder-2", "", "page", DemoManner::Steady, 20, 8, 5, ""},
    DemoRole{"site/docs/links", "checker-1", "checking 1,204 links", "link", DemoManner::Steady, 20,
             20, 9, ""},
    DemoRole{"site/shop/prices", "sync-1", "import from ERP", "row", DemoManner::Token0, 15, 10, 6,
             "postgres://shop#prices"},
};

constexpr Millis kDemoBeat{200};
constexpr std::string_view kDemoImport = "postgres://shop#stock";

Millis about_so_long(Random& random, int seconds) {
  const auto whole = static_cast<std::uint64_t>(seconds) * 1000;
  return Millis(static_cast<std::int64_t>(whole * 3 / 4 + random.below(whole / 2 + 1)));
}

}  // namespace

struct Demo::Player {
  explicit Player(const DemoRole& played, const ResourceName& name, const Owner& label, Claim first)
      : role(played), resource(name), owner(label), claim(std::move(first)) {}
  const DemoRole& role;
  ResourceName resource;
  Owner owner;
  Claim claim;
  std::optional<Token> token;  // held, as it believes
  std::optional<Token> late;   // was lost: it will try to write with it
  api::Hint hint;
  MonoTime next{};  // nothing is done before
  MonoTime renew_at{};
  MonoTime report_at{};
  MonoTime ends{};
  MonoTime freezes{};
  int done = 0;

  api::Grip grip() const { return {resource, *token, claim, owner, std::nullopt}; }
};

Demo::Demo(const Stage& stage, const Clock& clock)
    : stage_(stage),
      leases_(stage.leases),
      events_(stage.events),
      clock_(clock),
      random_(20261115) {
  for (const DemoRole& role : kDemoRoles) {
    auto resource = ResourceName::parse(role.resource);
    auto owner = Owner::parse(role.owner);
    if (!resource || !owner) continue;
    players_.push_back(std::make_unique<Player>(role, *resource, *owner, Claim::make(random_)));
    if (role.manner == DemoManner::Waved) players_.back()->next = clock_.mono() + Millis(3000);
  }
  thread_ = std::thread([this] { play(); });
}

Demo::~Demo() {
  over_ = true;
  thread_.join();
}

void Demo::play() {
  for (const auto& player : players_) step(*player);
  DemoQueues queues(stage_.queue, clock_, random_);
  DemoJobs jobs(leases_, stage_.slots, clock_, random_);
  while (!over_) {
    for (const auto& player : players_) {
      if (!over_) step(*player);
    }
    jobs.step();
    queues.step();
    os::pause_for(kDemoBeat);
  }
}

// What a verb answers is looked at only as far as the play needs it: a demo that meets a fault goes
// on at its next step.
void Demo::step(Player& player) {
  if (clock_.mono() < player.next) return;
  if (!player.token) {
    if (player.late) write_late(player);
    player.late.reset();
    return take(player);
  }
  work(player);
}

void Demo::take(Player& player) {
  const MonoTime now = clock_.mono();
  const DemoRole& role = player.role;
  player.claim = Claim::make(random_);
  auto answer = leases_.acquire({.resource = player.resource,
                                 .owner = player.owner,
                                 .claim = player.claim,
                                 .terms = {.ttl = Millis(role.ttl * 1000)},
                                 .note = std::string(role.note),
                                 .retake = std::nullopt});
  const auto* granted = answer ? std::get_if<api::Granted>(&*answer) : nullptr;
  if (granted == nullptr) {
    player.next = now + about_so_long(random_, role.manner == DemoManner::Waved ? role.rest : 2);
    return;
  }
  player.token = granted->lease.token;
  player.done = 0;
  player.renew_at = now + Millis(role.ttl * 1000 / 3);
  player.report_at = now + Millis(600);
  player.ends = now + about_so_long(random_, role.length);
  player.freezes = now + about_so_long(random_, std::max(1, role.length / 2));
  player.next = now;
}

void Demo::work(Player& player) {
  const MonoTime now = clock_.mono();
  const DemoRole& role = player.role;
  if (now >= player.ends) return end(player);
  if (role.manner == DemoManner::Frozen && now >= player.freezes) {
    // It sleeps past its lease, and wakes up believing in it.
    player.late = std::exchange(player.token, std::nullopt);
    player.next = now + Millis(role.ttl * 1000 + 4000);
    return;
  }
  if (now >= player.renew_at) {
    player.renew_at = now + Millis(role.ttl * 1000 / 3);
    auto held = leases_.renew(player.grip(), Millis(role.ttl * 1000));
    if (held && std::holds_alternative<api::Lost>(*held)) {
      player.late = std::exchange(player.token, std::nullopt);
      player.next = now + about_so_long(random_, 3);
      return;
    }
  }
  const bool silent = role.unit.empty() || (role.manner == DemoManner::Wedged && player.done >= 3);
  if (now < player.report_at || silent) return;
  player.report_at = now + about_so_long(random_, 2);
  player.done += 1 + static_cast<int>(random_.below(4));
  (void)leases_.progress(player.grip(), cat(role.unit, " ", player.done));
}

void Demo::end(Player& player) {
  (void)leases_.release(player.grip(), false);
  if (player.role.manner == DemoManner::Token0) {
    write_foreign(player);
    (void)events_.record_refusal(
        {.number = {},
         .at = clock_.wall(),
         .kind = "write_refused",
         .resource = player.resource.text(),
         .token = 0,
         .owner = "psql",
         .details = {{"target", std::string(player.role.target)},
                     {"cause", std::string("no_token")},
                     {"fence", static_cast<std::int64_t>(player.token->number())}}},
        std::string(player.role.target));
  }
  player.token.reset();
  player.next = clock_.mono() + about_so_long(random_, std::max(1, player.role.rest));
}

// A token that the store never gave: copied from another store, or made up.
void Demo::write_foreign(const Player& player) {
  constexpr std::uint64_t kOneIn = 3;
  if (random_.below(kOneIn) != 0) return;
  (void)events_.record_refusal(
      {.number = {},
       .at = clock_.wall(),
       .kind = "write_refused",
       .resource = player.resource.text(),
       .token = player.token->number() + 1000,
       .owner = "import.sh",
       .details = {{"target", std::string(kDemoImport)},
                   {"cause", std::string("never_issued")},
                   {"fence", static_cast<std::int64_t>(player.token->number())}}},
      std::string(kDemoImport));
}

void Demo::write_late(const Player& player) {
  if (player.role.target.empty()) return;
  auto present = leases_.get(player.resource);
  if (!present || present->token <= *player.late) return;
  (void)events_.record_refusal(
      {.number = {},
       .at = clock_.wall(),
       .kind = "write_refused",
       .resource = player.resource.text(),
       .token = player.late->number(),
       .owner = player.owner.text(),
       .details = {{"target", std::string(player.role.target)},
                   {"cause", std::string("stale")},
                   {"fence", static_cast<std::int64_t>(present->token.number())},
                   {"newest_owner", present->owner.text()}}},
      std::string(player.role.target));
}

}  // namespace stint::app
