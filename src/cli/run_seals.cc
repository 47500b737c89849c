#include "cli/run_seals.h"

#include <algorithm>
#include <memory>
#include <set>

#include "app/guards.h"
#include "base/text.h"
#include "guard/words.h"
#include "os/files.h"

namespace stint::cli {
namespace {

using Texts = std::vector<std::string>;

bool has(const Texts& list, const std::string& words) {
  return std::ranges::find(list, words) != list.end();
}

// The seals of one lease. The steps share it.
class LeaseSeals {
 public:
  LeaseSeals(const SealWorld& world, UnderLease lease, bool again)
      : world_(world), lease_(std::move(lease)), again_(again) {}

  // What was named for this lease. Its words are settled here if they could not be before.
  void want(const SealPlan::Wanted& one) {
    std::string words = one.target.words;
    if (!one.settled) {
      const auto absent = guard::words_of_absent(one.target);
      if (absent && has(lease_.sealed, *absent)) return;  // as one that is remembered
      auto target = guard::find_target(guards_, words, "/");
      if (!target) {
        troubles_.emplace_back(words, target.error());
        return;
      }
      words = target->words;
    }
    given_.insert(std::move(words));
  }

  void add_steps(std::vector<holder::SealStep>& steps, const std::shared_ptr<LeaseSeals>& self) {
    const std::size_t before = steps.size();
    for (const auto& trouble : troubles_) {
      steps.emplace_back([self, trouble] { return self->refuse(trouble.first, trouble.second); });
    }
    if (std::ranges::any_of(given_, [&](const auto& one) { return !stands(one); })) {
      steps.emplace_back([self] { return self->remember(); });
    }
    for (const std::string& words : given_) {
      steps.emplace_back([self, words] { return self->seal(words); });
    }
    for (const std::string& words : lease_.sealed) {
      if (!again_ || given_.contains(words)) continue;
      steps.emplace_back([self, words] { return self->seal_again(words); });
    }
    if (steps.size() > before) steps.emplace_back([self] { return self->tell(); });
  }

 private:
  guard::SealRequest request() const {
    return {.pass = lease_.pass, .by_order = false, .adopt = {}};
  }
  bool stands(const std::string& words) const {
    return has(lease_.sealed, words) && !has(lease_.sealing, words);
  }

  // Before the first of them is sealed: transfer and revoke must find all that may be.
  Status remember() {
    Texts ahead;
    std::ranges::copy_if(given_, std::back_inserter(ahead),
                         [&](const std::string& one) { return !stands(one); });
    auto verdict = world_.fences.remember(guard::offer_of(lease_.pass, ""), ahead);
    if (!verdict)
      return refuse(ahead.front(), std::move(verdict.error()).during("remembering the targets"));
    if (!guard::is_refusal(*verdict)) return {};
    return refuse(ahead.front(),
                  {guard::code_of(*verdict),
                   cat("the store does not take token ", lease_.pass.token.number(), " of ",
                       quoted(lease_.pass.resource.text()), " for the newest.")});
  }

  // Nobody reads from here what is not here.
  Status seal_again(const std::string& words) {
    const auto target = guard::parse_target(words, "/");
    if (!target || !guard::words_of_absent(*target)) return seal(words);
    const api::Event event = event_of("target_absent", words);
    // Once a minute is enough: it is no trouble of this run's if it cannot be told.
    static_cast<void>(world_.events.record_refusal(event, cat("target_absent ", words)));
    return {};
  }

  Status seal(const std::string& words) {
    app::SealReport report =
        app::seal_target(guards_, words, request(), world_.fences, world_.events, world_.clock);
    if (report.outcome == app::SealReport::Outcome::Sealed) {
      if (world_.say) world_.say(cat("sealed ", quoted(words)));
      (stands(words) && report.was_none ? anew_ : standing_).push_back(words);
      return {};
    }
    const bool first = given_.contains(words) && !has(lease_.sealed, words);
    if (first) app::strike(request(), report, world_.fences);
    Error error = std::move(report.error).during(cat("sealing ", quoted(words)));
    // A target that cannot be used is, for whoever wants to start, one that is not reached.
    const bool away = report.outcome == app::SealReport::Outcome::NotReached;
    if (away) error.code = Code::Unavailable;
    if (!first) error.message += since_when(words, away);
    return refuse(words, std::move(error));
  }

  // Of one that is remembered: since when, by whom, and how that ends.
  std::string since_when(const std::string& words, bool away) {
    const ResourceName& resource = lease_.pass.resource;
    std::string out = cat(" It is remembered for ", quoted(resource.text()));
    auto word = world_.fences.word(resource);
    const auto found = word ? std::ranges::find(word->targets, words, &api::SealedTarget::words)
                            : std::vector<api::SealedTarget>::iterator();
    if (word && found != word->targets.end() && found->since) {
      out += cat(" since ", format_utc(*found->since), ", sealed first by ",
                 owner_of(found->first_token), "token ", found->first_token.number());
    }
    out += ", and every run seals it first.";
    // Where it answers that it is another's, no ready command: that is a question of its own.
    if (!away)
      return out +
             " A holder of the right to acquire the resource may forget it "
             "(docs/guides/guards.md).";
    return cat(out, " If it is gone for good or was mistyped: stint seal ", quoted(words),
               " --resource ", quoted(resource.text()), " --forget --why TEXT.");
  }

  std::string owner_of(Token token) {
    constexpr std::size_t kMost = 1000;
    auto past = world_.leases.history(lease_.pass.resource, kMost);
    if (!past) return {};
    const auto found = std::ranges::find(*past, token, &api::PastGrant::token);
    return found == past->end() ? std::string() : cat(quoted(found->owner.text()), ", ");
  }

  // After the seals, in one word. A failure is no harm (guard::tell_standing).
  Status tell() {
    guard::tell_standing(world_.fences, request(), standing_);
    guard::tell_standing(world_.fences, request(), anew_, core::Sealing::MadeAnew);
    return {};
  }

  api::Event event_of(std::string_view kind, const std::string& words) const {
    api::Event event;
    event.at = world_.clock.wall();
    event.kind = kind;
    event.resource = lease_.pass.resource.text();
    event.token = lease_.pass.token.number();
    event.owner = lease_.pass.owner.text();
    event.details.emplace_back("target", words);
    return event;
  }

  Status refuse(const std::string& words, Error error) {
    api::Event event = event_of("run_refused", words);
    event.details.emplace_back("cause", std::string(word(error.code)));
    if (auto recorded = world_.events.record(event); !recorded) {
      error.message += cat(" (This could not be recorded: ", recorded.error().message, ")");
    }
    error.message += cat(error.message.ends_with('.') ? "" : ".", " The command was not started.");
    return error;
  }

  const SealWorld world_;
  const UnderLease lease_;
  const bool again_;
  const guard::Guards guards_ = app::guards();
  std::set<std::string> given_;
  std::vector<std::pair<std::string, Error>> troubles_;
  Texts standing_;
  Texts anew_;
};

// "R=TARGET": only for a resource that may be taken, for a target may have a '=' of its own.
Result<std::string> split_resource(std::string& text, const MayTake& may) {
  for (const auto* list : {&may.together, &may.others}) {
    for (const ResourceName& one : *list) {
      const std::string prefix = one.text() + "=";
      if (!text.starts_with(prefix)) continue;
      text.erase(0, prefix.size());
      return one.text();
    }
  }
  const std::size_t equals = text.find('=');
  if (equals != text.npos && text.find(':') > equals) {
    return invalid(cat("--seal ", quoted(text), ": ", quoted(text.substr(0, equals)),
                       " is none of the resources of this run"));
  }
  return std::string();
}

// `lazily`: its resource may not be taken at all.
Status add_wanted(SealPlan& plan, const std::string& resource, const std::string& text,
                  bool lazily) {
  const std::string here = os::absolute(".");
  auto parsed = guard::parse_target(text, here);
  if (!parsed) return parsed.error();
  SealPlan::Wanted one{.resource = resource, .target = std::move(*parsed), .settled = false};
  // Of one that is not here it counts whether it is remembered, and that the grant tells.
  if (!lazily && !guard::words_of_absent(one.target)) {
    auto target = guard::find_target(app::guards(), text, here);
    if (!target) return target.error();
    one.target = std::move(*target);
    one.settled = true;
  }
  plan.wanted.push_back(std::move(one));
  return {};
}

}  // namespace

Result<SealPlan> plan_seals(Session& session, const MayTake& may,
                            const std::vector<std::string>& texts) {
  SealPlan plan;
  auto settings = session.settings();
  if (!settings) return settings.error();
  plan.again = !session.words().has("--no-seal");
  for (std::string text : texts) {
    auto resource = split_resource(text, may);
    if (!resource) return resource.error();
    const bool lazily =
        std::ranges::find(may.others, *resource, &ResourceName::text) != may.others.end();
    if (auto ok = add_wanted(plan, *resource, text, lazily); !ok) return ok.error();
  }
  if (!plan.again) return plan;
  for (const auto* list : {&may.together, &may.others}) {
    for (const ResourceName& one : *list) {
      const auto configured = (*settings)->seal.find(one.text());
      if (configured == (*settings)->seal.end()) continue;
      for (const std::string& text : configured->second) {
        if (auto ok = add_wanted(plan, one.text(), text, list == &may.others); !ok) {
          return ok.error();
        }
      }
    }
  }
  return plan;
}

std::vector<UnderLease> under_leases(const holder::Taken& taken, const ResourceName& first,
                                     const Owner& owner, const Generation& generation) {
  std::vector<UnderLease> out;
  const auto leading =
      std::ranges::find_if(taken.kept, [&](const auto& one) { return one.grip.resource == first; });
  for (std::size_t i = 0; i < taken.kept.size(); ++i) {
    const holder::Kept& kept = taken.kept[i];
    // A lease that is lent was granted to somebody else, who sealed what was known.
    const api::Granted granted = i < taken.grants.size() ? taken.grants[i] : api::Granted();
    const bool leads = leading == taken.kept.end() ? i == 0 : &kept == &*leading;
    out.push_back({.pass = {.resource = kept.grip.resource,
                            .token = kept.grip.token,
                            .generation = holder::generation_of(taken, kept, generation),
                            .claim = kept.grip.claim,
                            .owner = owner,
                            .key = ""},
                   .leads = leads,
                   .sealed = granted.sealed,
                   .sealing = granted.sealing});
  }
  return out;
}

SealWorld seal_world(Session& session, app::Opened& opened) {
  SealWorld out{.fences = opened.fences(),
                .events = opened.events(),
                .leases = opened.leases(),
                .clock = session.clock(),
                .say = nullptr};
  if (session.words().has("-v")) out.say = [&](const std::string& line) { session.say(line); };
  return out;
}

std::vector<holder::SealStep> seal_steps(const SealWorld& world, const SealPlan& plan,
                                         const std::vector<UnderLease>& leases) {
  std::vector<holder::SealStep> steps;
  for (const UnderLease& lease : leases) {
    const auto seals = std::make_shared<LeaseSeals>(world, lease, plan.again);
    for (const SealPlan::Wanted& one : plan.wanted) {
      const bool its =
          one.resource.empty() ? lease.leads : one.resource == lease.pass.resource.text();
      if (its) seals->want(one);
    }
    seals->add_steps(steps, seals);
  }
  return steps;
}

}  // namespace stint::cli
