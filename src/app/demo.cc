#include "app/demo.h"

#include <array>

#include "base/text.h"
#include "os/pause.h"

namespace stint::app {
namespace {

// How a run of the demo behaves.
enum class Manner {
  Steady,  // renews, reports, releases
  Frozen,  // stops renewing in the middle; wakes up late and tries to write
  Wedged,  // renews for ever and reports nothing more
  Waved,   // asks for what another holds
  Silent,  // reports no progress at all
  Token0,  // also writes where a token is needed, without one
};

struct Role {
  std::string_view resource;
  std::string_view owner;
  std::string_view note;
  std::string_view unit;  // of its progress
  Manner manner;
  int ttl;     // seconds
  int length;  // of a run, about
  int rest;    // between two runs, about
  std::string_view target;
};

constexpr std::array kRoles = {
    Role{"agents/inbox/triage", "triage-7", "sorting 212 messages", "message", Manner::Steady, 30,
         24, 4, ""},
    Role{"agents/review/pr-1421", "reviewer-2", "reading the diff of #1421", "file", Manner::Steady,
         30, 16, 9, ""},
    Role{"agents/review/pr-1433", "reviewer-5", "waiting for a model's answer", "file",
         Manner::Wedged, 10, 100000, 0, ""},
    Role{"agents/summaries/weekly", "writer-1", "week 46", "section", Manner::Steady, 20, 12, 6,
         ""},
    Role{"backup/db/main", "backup-a", "pg_dump main", "table", Manner::Steady, 60, 48, 10, ""},
    Role{"backup/db/main", "backup-b", "pg_dump main", "table", Manner::Waved, 60, 1, 22, ""},
    Role{"backup/files/home", "backup-c", "", "", Manner::Silent, 90, 70, 12, ""},
    Role{"data/warehouse/load", "loader-1", "orders 2026-11", "batch", Manner::Steady, 45, 30, 5,
         ""},
    Role{"data/warehouse/vacuum", "loader-2", "", "", Manner::Silent, 30, 9, 20, ""},
    Role{"data/search/index", "indexer-1", "shard 3 of 8", "document", Manner::Frozen, 5, 14, 3,
         "file:/srv/search/shard-3.idx"},
    Role{"data/search/index", "indexer-2", "shard 3 of 8", "document", Manner::Steady, 5, 9, 5,
         "file:/srv/search/shard-3.idx"},
    Role{"deploy/prod", "ci/4711", "release 2026.46.1", "step", Manner::Steady, 60, 40, 20, ""},
    Role{"deploy/prod", "ci/4712", "release 2026.46.2", "step", Manner::Waved, 60, 1, 30, ""},
    Role{"deploy/staging", "ci/4709", "branch page", "step", Manner::Steady, 30, 11, 7, ""},
    Role{"mail/digest", "digest-eu", "", "recipient", Manner::Steady, 20, 15, 6, ""},
    Role{"ml/ranker/train", "gpu-3", "epoch 12 of 40", "step", Manner::Steady, 60, 100000, 0, ""},
    Role{"ml/ranker/evaluate", "gpu-1", "", "batch", Manner::Steady, 30, 14, 12, ""},
    Role{"site/blog/publish", "nightly-a", "publishing 3 posts", "page", Manner::Frozen, 4, 12, 4,
         "git:origin/main"},
    Role{"site/blog/publish", "nightly-b", "publishing 3 posts", "page", Manner::Steady, 4, 10, 4,
         "git:origin/main"},
    Role{"site/docs/build", "builder-2", "", "page", Manner::Steady, 20, 8, 5, ""},
    Role{"site/docs/links", "checker-1", "checking 1,204 links", "link", Manner::Steady, 20, 20, 9,
         ""},
    Role{"site/shop/prices", "sync-1", "import from ERP", "row", Manner::Token0, 15, 10, 6,
         "postgres://shop#prices"},
};

constexpr Millis kBeat{200};

Millis around(Random& random, int seconds) {
  const auto whole = static_cast<std::uint64_t>(seconds) * 1000;
  return Millis(static_cast<std::int64_t>(whole * 3 / 4 + random.below(whole / 2 + 1)));
}

}  // namespace

struct Demo::Player {
  explicit Player(const Role& played, const ResourceName& name, const Owner& label, Claim first)
      : role(played), resource(name), owner(label), claim(std::move(first)) {}
  const Role& role;
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

Demo::Demo(api::Leases& leases, api::Events& events, const Clock& clock)
    : leases_(leases), events_(events), clock_(clock), random_(20261115) {
  for (const Role& role : kRoles) {
    auto resource = ResourceName::parse(role.resource);
    auto owner = Owner::parse(role.owner);
    if (!resource || !owner) continue;
    players_.push_back(std::make_unique<Player>(role, *resource, *owner, Claim::make(random_)));
    if (role.manner == Manner::Waved) players_.back()->next = clock_.mono() + Millis(3000);
  }
  thread_ = std::thread([this] { play(); });
}

Demo::~Demo() {
  over_ = true;
  thread_.join();
}

void Demo::play() {
  while (!over_) {
    for (const auto& player : players_) step(*player);
    os::pause_for(kBeat);
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
  const Role& role = player.role;
  player.claim = Claim::make(random_);
  auto answer = leases_.acquire({.resource = player.resource,
                                 .owner = player.owner,
                                 .claim = player.claim,
                                 .terms = {.ttl = Millis(role.ttl * 1000)},
                                 .note = std::string(role.note),
                                 .retake = std::nullopt});
  const auto* granted = answer ? std::get_if<api::Granted>(&*answer) : nullptr;
  if (granted == nullptr) {
    player.next = now + around(random_, role.manner == Manner::Waved ? role.rest : 2);
    return;
  }
  player.token = granted->lease.token;
  player.done = 0;
  player.renew_at = now + Millis(role.ttl * 1000 / 3);
  player.report_at = now + Millis(600);
  player.ends = now + around(random_, role.length);
  player.freezes = now + around(random_, std::max(1, role.length / 2));
  player.next = now;
}

void Demo::work(Player& player) {
  const MonoTime now = clock_.mono();
  const Role& role = player.role;
  if (now >= player.ends) return end(player);
  if (role.manner == Manner::Frozen && now >= player.freezes) {
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
      player.next = now + around(random_, 3);
      return;
    }
  }
  const bool silent = role.unit.empty() || (role.manner == Manner::Wedged && player.done >= 3);
  if (now < player.report_at || silent) return;
  player.report_at = now + around(random_, 2);
  player.done += 1 + static_cast<int>(random_.below(4));
  (void)leases_.progress(player.grip(), cat(role.unit, " ", player.done));
}

void Demo::end(Player& player) {
  (void)leases_.release(player.grip(), false);
  if (player.role.manner == Manner::Token0) {
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
  player.next = clock_.mono() + around(random_, std::max(1, player.role.rest));
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
