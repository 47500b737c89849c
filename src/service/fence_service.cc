#include "service/fence_service.h"

#include <algorithm>

#include "api/wire.h"
#include "base/text.h"
#include "service/fence_records.h"
#include "service/ledger.h"
#include "service/once_records.h"
#include "service/records.h"
#include "service/settling.h"
#include "service/store_life.h"

namespace stint::service {

using core::Verdict;
using store::Step;

namespace {

using Law = core::FenceDecision (*)(const std::optional<core::Fence>&, const core::Offer&,
                                    const core::Issued&);

bool refusal(Verdict verdict) { return verdict != Verdict::Admitted && verdict != Verdict::Done; }

Step expecting(std::string key, store::Version seen) {
  Step step;
  step.key = std::move(key);
  step.expect = seen == 0 ? store::Expect::Absent : store::Expect::Seen;
  step.version = seen;
  return step;
}

Step setting(std::string key, store::Version seen, std::string value) {
  Step step = expecting(std::move(key), seen);
  step.kind = Step::Kind::Set;
  step.value = std::move(value);
  return step;
}

// What happened is not known, and asking again did not settle it.
Error still_unknown(std::string_view what) {
  return {Code::UnknownOutcome,
          cat("the store did not answer, and what it says now does not settle it: ", what,
              " may or may not have been written")};
}

}  // namespace

// What is asked for. Empty names: that record is not needed.
struct FenceService::Asked {
  core::Offer offer;
  std::string resource;
  std::string target;
  std::string name;  // with `key`: of an act
  std::string key;
  bool targets = false;  // the list of sealed targets
  Law law = core::seal_in_store;
  api::Act act = {};
  std::vector<std::string> words = {};  // targets to remember or forget
  WallTime now{};                       // of those
  api::ForgetWord forget = {};
};

// The records at one reading, and what was decided on them.
struct FenceService::View {
  core::Issued issued;
  std::optional<core::Ownership> own;
  core::Record record;
  store::Version own_version = 0;
  std::optional<core::Fence> fence;
  store::Version fence_version = 0;
  std::optional<api::Act> act;
  store::Version act_version = 0;
  Remembered sealed;
  store::Version sealed_version = 0;
  store::Version seals_version = 0;
  Verdict verdict = Verdict::Stale;
};

struct FenceService::Plan {
  Verdict verdict = Verdict::Stale;
  std::vector<Step> steps;  // empty: nothing to write
  std::optional<core::Fence> fence;
  std::optional<api::Act> act;
  store::Sync sync = store::Sync::Durable;
};

namespace {

// What every verb needs; what only some need follows.
enum Place : std::size_t { kMeta, kOwn, kAlive, kCap, kRest, kCool, kFurther };

template <class T>
Status take(const store::Entry& entry, Result<T> (*decode)(std::string_view),
            std::optional<T>& out) {
  if (!entry.present()) return {};
  auto value = decode(entry.value);
  if (!value) return value.error();
  out = std::move(*value);
  return {};
}

// A forgotten record's tokens end at the floor, and nobody has the one that stands there.   G1
core::Issued issued_of(const Meta& meta, const std::optional<core::Ownership>& own) {
  return {.generation = meta.generation,
          .ancestors = meta.ancestors,
          .newest = own ? own->token : meta.floor,
          .newest_granted = own && !own->claim.empty(),
          .newest_nobodys = own && own->owner.empty()};
}

}  // namespace

Result<FenceService::View> FenceService::look(const Asked& asked) {
  const std::string& r = asked.resource;
  std::vector<std::string> keys = {std::string(kMetaKey), own_key(r), alive_key(r), cap_key(r),
                                   rest_key(r),           cool_key(r)};
  if (asked.targets) keys.insert(keys.end(), {sealed_key(r), seals_key(r)});
  if (!asked.target.empty()) keys.push_back(fence_key(asked.target));
  if (!asked.key.empty()) keys.push_back(act_key(asked.name, asked.key));
  auto reading = store_.read(keys);
  if (!reading) return reading.error();
  const auto& entries = reading->entries;
  if (!entries[kMeta].present()) return unavailable("the store has lost its meta record");
  auto meta = decode_meta(entries[kMeta].value);
  if (!meta) return meta.error();
  // What a closed store says of its tokens was true once.
  if (auto usable = check_settled(*meta); !usable) return usable.error();
  View view;
  if (auto ok = take(entries[kOwn], decode_own, view.own); !ok) return ok.error();
  view.own_version = entries[kOwn].version;
  view.issued = issued_of(*meta, view.own);
  if (view.own) {
    auto pulse = decode_pulse(entries[kAlive].value);
    if (!pulse) return pulse.error();
    view.record.own = view.own;
    view.record.pulse = *pulse;
  }
  view.record.timers = {entries[kAlive].timer, entries[kCap].timer, entries[kRest].timer,
                        entries[kCool].timer};
  auto entry = entries.begin() + kFurther;
  if (asked.targets) {
    std::optional<Remembered> sealed;
    if (auto ok = take(*entry, decode_sealed, sealed); !ok) return ok.error();
    view.sealed = sealed.value_or(Remembered());
    view.sealed_version = (entry++)->version;
    std::optional<std::map<std::string, SealTime>> times;
    if (auto ok = take(*entry, decode_seals, times); !ok) return ok.error();
    if (times) view.sealed.times = std::move(*times);
    view.seals_version = (entry++)->version;
  }
  if (!asked.target.empty()) {
    if (auto ok = take(*entry, decode_fence, view.fence); !ok) return ok.error();
    view.fence_version = (entry++)->version;
  }
  if (!asked.key.empty() && entry->present()) {
    auto act = decode_act(asked.name, asked.key, entry->value);
    if (!act) return act.error();
    view.act = std::move(*act);
    view.act_version = entry->version;
  }
  return view;
}

Result<FenceService::View> FenceService::settle(const Asked& asked, Decide decide, Write write) {
  const Keeper keeper(store_, clock_, once_);
  int unknowns = 0;
  const auto kept_unknown = [&](Error error) {
    if (unknowns > 0) error.code = Code::UnknownOutcome;
    return error;
  };
  for (int tries = 0; tries < kMostTries; ++tries) {
    auto view = look(asked);
    if (!view) return kept_unknown(view.error());
    auto plan = decide(*view, asked);
    if (!plan) return kept_unknown(plan.error());
    view->verdict = plan->verdict;
    if (refusal(plan->verdict)) {
      // The lost commit may have been carried out before whatever is in its way now.
      if (unknowns > 0) return still_unknown("it");
      return view;
    }
    if (plan->fence) view->fence = std::move(plan->fence);
    if (plan->act) view->act = std::move(plan->act);
    // A yes that is kept was one when it was kept.   G5
    if (once_ && plan->steps.empty() && !asked.target.empty()) {
      plan->steps = unchanged(*view, asked);
    }
    auto answer = keeper.commit(std::move(plan->steps), plan->sync, [&] { return write(*view); });
    if (!answer) {
      const bool again = answer.error().code == Code::UnknownOutcome && ++unknowns < kMostUnknowns;
      if (!again) return kept_unknown(answer.error());
      continue;
    }
    if (std::holds_alternative<store::Committed>(*answer)) return view;
  }
  return kept_unknown(unavailable(
      cat("the fence of ", quoted(asked.target), " changes too fast to be committed to")));
}

// What a decision rests on: the fence, and the newest token of its resource.   G5
std::vector<Step> FenceService::unchanged(const View& view, const Asked& asked) {
  return {expecting(fence_key(asked.target), view.fence_version),
          expecting(own_key(asked.resource), view.own_version)};
}

// The comparison with fence and newest token and the raising, in one commit. Without a raising the
// reading, which is of one moment, is the comparison.   G5
Result<FenceService::Plan> FenceService::plan_raise(const View& view, const Asked& asked) {
  core::FenceDecision decision = asked.law(view.fence, asked.offer, view.issued);
  Plan plan{.verdict = decision.verdict, .steps = {}, .fence = decision.fence, .act = {}};
  if (refusal(plan.verdict) || !decision.fence) return plan;
  plan.steps.push_back(
      setting(fence_key(asked.target), view.fence_version, encode(*decision.fence)));
  plan.steps.push_back(expecting(own_key(asked.resource), view.own_version));
  return plan;
}

Result<FenceService::Plan> FenceService::plan_begin(const View& view, const Asked& asked) {
  auto plan = plan_raise(view, asked);
  if (!plan || refusal(plan->verdict)) return plan;
  // An act is always somebody's: also the first one, at a target that has no fence yet.
  if (!asked.offer.token.issued()) {
    return Plan{.verdict = Verdict::NoToken, .steps = {}, .fence = {}, .act = {}};
  }
  const bool finished = view.act && view.act->result_token.has_value();
  if (finished || plan->verdict == Verdict::Done) {
    return Plan{.verdict = Verdict::Done, .steps = {}, .fence = {}, .act = {}};
  }
  if (plan->steps.empty()) plan->steps = unchanged(view, asked);
  plan->act = asked.act;
  plan->steps.push_back(
      setting(act_key(asked.name, asked.key), view.act_version, encode(*plan->act)));
  return plan;
}

Result<FenceService::Plan> FenceService::plan_finish(const View& view, const Asked& asked) {
  const core::FenceDecision decision = asked.law(view.fence, asked.offer, view.issued);
  Plan plan{.verdict = decision.verdict, .steps = {}, .fence = {}, .act = {}};
  if (refusal(plan.verdict)) return plan;
  if (!view.act || view.act->token != asked.offer.token ||
      view.act->generation != asked.offer.generation) {
    return invalid(cat("there is no intent of token ", asked.offer.token.number(), " for the key ",
                       quoted(asked.key)));
  }
  plan.act = view.act;
  plan.act->result_token = asked.offer.token;
  plan.act->exit_code = asked.act.exit_code;
  plan.act->digest = asked.act.digest;
  plan.act->ended_at = asked.act.ended_at;
  // This very result stands there: what an unanswered commit left.
  const std::string value = encode(*plan.act);
  if (value == encode(*view.act)) return plan;
  plan.steps = unchanged(view, asked);
  plan.steps.push_back(setting(act_key(asked.name, asked.key), view.act_version, value));
  return plan;
}

namespace {

void add_sorted(std::vector<std::string>& to, const std::string& one) {
  const auto place = std::ranges::lower_bound(to, one);
  if (place == to.end() || *place != one) to.insert(place, one);
}

// What is sealed stays so, but for somebody's word: another process of the holder, or the next one,
// may have got further than who speaks now.
void tell_one(Remembered& known, const std::string& target, const core::Offer& offer,
              WallTime now) {
  const bool sealed = std::ranges::binary_search(known.sealed, target);
  const bool ahead = std::ranges::binary_search(known.sealing, target);
  SealTime fresh{.token = offer.token, .at = now, .first = offer.token, .since = now};
  const auto time = known.times.find(seal_name(target));
  if (time != known.times.end() && (sealed || ahead)) {
    fresh.first = time->second.first;
    fresh.since = time->second.since;
  }
  switch (offer.sealing) {
    case core::Sealing::Ahead:
      if (sealed) return;
      // The process that said so before may have got to its fence.
      fresh.shared = ahead;
      add_sorted(known.sealing, target);
      break;
    case core::Sealing::MadeAnew:
      std::erase(known.sealing, target);
      add_sorted(known.sealed, target);
      break;
    case core::Sealing::Stands:
      if (sealed && time != known.times.end() && time->second.token >= offer.token) return;
      std::erase(known.sealing, target);
      add_sorted(known.sealed, target);
      break;
    case core::Sealing::Refused:
      if (sealed || (time != known.times.end() && time->second.shared)) return;
      std::erase(known.sealing, target);
      known.times.erase(seal_name(target));
      return;
  }
  known.times[seal_name(target)] = fresh;
}

// Of the newest token.
api::Event event_of(std::string_view kind, const std::string& resource, const std::string& target,
                    const std::optional<core::Ownership>& own, WallTime now) {
  api::Event event;
  event.at = now;
  event.kind = kind;
  event.resource = resource;
  if (own) event.token = own->token.number();
  if (own) event.owner = own->owner.text();
  event.details.emplace_back("target", target);
  return event;
}

Step forgotten_step(const std::string& resource, const std::string& target,
                    const std::optional<core::Ownership>& own, const api::ForgetWord& word,
                    WallTime now) {
  api::Event event = event_of("target_forgotten", resource, target, own, now);
  event.details.emplace_back("by", word.by);
  event.details.emplace_back("why", word.why);
  return append_event(event);
}

}  // namespace

Result<FenceService::Plan> FenceService::plan_remember(const View& view, const Asked& asked) {
  Plan plan{.verdict = core::seal(std::nullopt, asked.offer, view.issued).verdict,
            .steps = {},
            .fence = {},
            .act = {}};
  if (refusal(plan.verdict)) return plan;
  Remembered after = view.sealed;
  for (const std::string& target : asked.words) tell_one(after, target, asked.offer, asked.now);
  const std::vector<std::string> gone = make_room(after, asked.words);
  if (auto ok = check_sealed(after); !ok) return ok.error();
  plan_lists(plan, view, asked, after);
  if (asked.offer.sealing == core::Sealing::MadeAnew) {
    for (const std::string& target : asked.words) {
      plan.steps.push_back(
          append_event(event_of("fence_made_anew", asked.resource, target, view.own, asked.now)));
    }
  }
  if (plan.steps.empty()) return plan;
  const api::ForgetWord word{
      .why = cat("at most ", api::kMostSealedTargets,
                 " targets are remembered, and this one was sealed longest ago"),
      .by = "stint"};
  for (const std::string& target : gone) {
    plan.steps.push_back(forgotten_step(asked.resource, target, view.own, word, asked.now));
  }
  plan.steps.push_back(expecting(own_key(asked.resource), view.own_version));
  return plan;
}

// No steps: nothing has changed. That a target was sealed again need not survive a power cut.
void FenceService::plan_lists(Plan& plan, const View& view, const Asked& asked,
                              const Remembered& after) {
  if (after.same_lists(view.sealed)) {
    if (after.times == view.sealed.times) return;
    plan.sync = store::Sync::Relaxed;
  } else {
    plan.steps.push_back(
        setting(sealed_key(asked.resource), view.sealed_version, encode_sealed(after)));
  }
  plan.steps.push_back(setting(seals_key(asked.resource), view.seals_version, encode_seals(after)));
}

Result<FenceService::Plan> FenceService::plan_forget(const View& view, const Asked& asked) {
  Plan plan{.verdict = Verdict::Admitted, .steps = {}, .fence = {}, .act = {}};
  Remembered left = view.sealed;
  for (const std::string& target : asked.words) {
    std::erase(left.sealed, target);
    std::erase(left.sealing, target);
    left.times.erase(seal_name(target));
    if (left.same_lists(view.sealed)) continue;
    plan.steps.push_back(forgotten_step(asked.resource, target, view.own, asked.forget, asked.now));
  }
  if (!plan.steps.empty()) plan_lists(plan, view, asked, left);
  return plan;
}

namespace {

std::vector<api::SealedTarget> targets_of(const Remembered& known) {
  std::vector<api::SealedTarget> out;
  for (const std::string& words : known.all()) {
    api::SealedTarget& one = out.emplace_back();
    one.words = words;
    one.stands = std::ranges::binary_search(known.sealed, words);
    const auto time = known.times.find(seal_name(words));
    if (time == known.times.end()) continue;
    one.token = time->second.token;
    one.at = time->second.at;
    one.first_token = time->second.first;
    one.since = time->second.since;
  }
  return out;
}

}  // namespace

Result<api::TokenWord> FenceService::word(const ResourceName& resource) {
  auto view = look({.offer = {},
                    .resource = resource.text(),
                    .target = "",
                    .name = "",
                    .key = "",
                    .targets = true});
  if (!view) return view.error();
  api::TokenWord word{.issued = std::move(view->issued),
                      .owner = {},
                      .claim = {},
                      .live = false,
                      .remaining = std::nullopt,
                      .sealed = view->sealed.all(),
                      .sealing = view->sealed.sealing,
                      .targets = targets_of(view->sealed)};
  if (!view->own) {
    // Nobody ever held it, or its record was forgotten: the floor then is its last token.
    return word;
  }
  word.owner = view->own->owner;
  word.claim = view->own->claim;
  word.live = core::state_of(view->record) == core::State::Held;
  if (!word.live) return word;
  const core::Timers& timers = view->record.timers;
  word.remaining = timers.alive.remaining;
  if (timers.cap.state == TimerState::Running && timers.cap.remaining && word.remaining) {
    word.remaining = std::min(*word.remaining, *timers.cap.remaining);
  }
  return word;
}

Result<std::vector<std::string>> FenceService::sealed(const ResourceName& resource) {
  auto said = word(resource);
  if (!said) return said.error();
  return said->sealed;
}

Result<core::Verdict> FenceService::remember(const core::Offer& offer,
                                             const std::vector<std::string>& targets) {
  core::Offer plain = offer;
  plain.mode = core::FenceMode::AtLeast;
  if (auto ok = check_offer(plain); !ok) return ok.error();
  if (auto ok = check_sealed({.sealed = targets, .sealing = {}}); !ok) return ok.error();
  auto view =
      settle({.offer = plain,
              .resource = plain.resource,
              .target = "",
              .name = "",
              .key = "",
              .targets = true,
              .words = targets,
              .now = clock_.wall()},
             plan_remember, [](const View& told) {
               return api::to_json({.verdict = told.verdict, .fence = {}, .owner = {}}, nullptr);
             });
  if (!view) return view.error();
  return view->verdict;
}

Status FenceService::forget(const ResourceName& resource, const std::string& target,
                            const api::ForgetWord& word) {
  auto view = settle({.offer = {},
                      .resource = resource.text(),
                      .target = "",
                      .name = "",
                      .key = "",
                      .targets = true,
                      .words = {target},
                      .now = clock_.wall(),
                      .forget = word},
                     plan_forget, [](const View&) { return std::string(R"({"forgotten":true})"); });
  if (!view) return view.error();
  return {};
}

api::FenceAnswer FenceService::answer_of(const View& view) {
  return {.verdict = view.verdict,
          .fence = view.fence,
          .owner = view.own ? view.own->owner : Owner(),
          .act = view.act};
}

Result<api::FenceAnswer> FenceService::answer(const Asked& asked, Decide decide) {
  if (auto ok = check_offer(asked.offer); !ok) return ok.error();
  if (auto ok = check_target(asked.target); !ok) return ok.error();
  auto view = settle(asked, decide,
                     [](const View& told) { return api::to_json(answer_of(told), nullptr); });
  if (!view) return view.error();
  return answer_of(*view);
}

Result<api::FenceAnswer> FenceService::admit(const std::string& target, const core::Offer& offer) {
  return answer({.offer = offer,
                 .resource = offer.resource,
                 .target = target,
                 .name = "",
                 .key = "",
                 .law = core::admit_in_store},
                plan_raise);
}

Result<api::FenceAnswer> FenceService::seal(const std::string& target, const core::Offer& offer) {
  return answer(
      {.offer = offer, .resource = offer.resource, .target = target, .name = "", .key = ""},
      plan_raise);
}

Result<std::optional<core::Fence>> FenceService::fence(const std::string& target) {
  if (auto ok = check_target(target); !ok) return ok.error();
  auto reading = store_.read({fence_key(target)});
  if (!reading) return reading.error();
  std::optional<core::Fence> fence;
  if (auto ok = take(reading->entries.front(), decode_fence, fence); !ok) return ok.error();
  return fence;
}

Result<std::vector<std::string>> FenceService::names() {
  store::Store::ScanRange range{.prefix = std::string(kFencePrefix), .after = "", .limit = 500};
  std::vector<std::string> out;
  while (true) {
    auto page = store_.scan(range);
    if (!page) return page.error();
    if (page->entries.empty()) return out;
    for (const store::Entry& entry : page->entries) {
      out.push_back(entry.key.substr(kFencePrefix.size()));
    }
    range.after = page->entries.back().key;
  }
}

Result<api::FenceAnswer> FenceService::begin(const api::Act& act, const core::Offer& offer) {
  if (auto ok = check_act(act.name, act.key); !ok) return ok.error();
  api::Act intent{.name = act.name,
                  .key = act.key,
                  .generation = offer.generation,
                  .resource = offer.resource,
                  .token = offer.token,
                  .owner = act.owner,
                  .begun_at = clock_.wall(),
                  .result_token = std::nullopt,
                  .exit_code = std::nullopt,
                  .digest = "",
                  .ended_at = std::nullopt};
  return answer({.offer = offer,
                 .resource = offer.resource,
                 .target = api::admit_target(act.name),
                 .name = act.name,
                 .key = act.key,
                 .law = core::admit_in_store,
                 .act = std::move(intent)},
                plan_begin);
}

Result<api::FenceAnswer> FenceService::finish(const api::Act& act, const core::Offer& offer) {
  if (auto ok = check_act(act.name, act.key); !ok) return ok.error();
  if (auto ok = check_digest(act.digest); !ok) return ok.error();
  if (!act.exit_code || *act.exit_code < 0 || *act.exit_code > 255) {
    return invalid("a result has an exit code from 0 to 255");
  }
  core::Offer plain = offer;
  plain.mode = core::FenceMode::AtLeast;  // the one write of the token was its intent
  api::Act result = act;
  result.ended_at = act.ended_at.value_or(clock_.wall());
  return answer({.offer = plain,
                 .resource = offer.resource,
                 .target = api::admit_target(act.name),
                 .name = act.name,
                 .key = act.key,
                 .law = core::admit_in_store,
                 .act = std::move(result)},
                plan_finish);
}

Result<std::optional<api::Act>> FenceService::act(const std::string& name, const std::string& key) {
  if (auto ok = check_act(name, key); !ok) return ok.error();
  auto reading = store_.read({act_key(name, key)});
  if (!reading) return reading.error();
  const store::Entry& entry = reading->entries.front();
  if (!entry.present()) return std::optional<api::Act>();
  auto act = decode_act(name, key, entry.value);
  if (!act) return act.error();
  return std::optional<api::Act>(std::move(*act));
}

}  // namespace stint::service
