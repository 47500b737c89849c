// The steps of LAW section 4 that files and directories share. The order of the steps is the whole
// of the safety; docs/internals/guards.md says what each one stops.
#include <algorithm>
#include <cerrno>

#include "base/text.h"
#include "guard/git_exclude.h"
#include "guard/site.h"
#include "os/files.h"

namespace stint::guard {
namespace {

constexpr int kMostSealTries = 64;

bool admitted(core::Verdict verdict) { return verdict == core::Verdict::Admitted; }

Error torn_error(const Survey& survey) { return unavailable(survey.why_torn); }

bool of_line(const StandingFence& fence, const Pass& pass) {
  return fence.fence.generation == pass.generation && fence.fence.resource == pass.resource.text();
}

const StandingFence* highest(const Survey& survey) {
  const auto found = std::ranges::max_element(
      survey.fences, [](const StandingFence& a, const StandingFence& b) { return above(b, a); });
  return found == survey.fences.end() ? nullptr : &*found;
}

// What the fence that this request makes says.
StandingFence fence_of(const SealRequest& request, const Survey& survey,
                       const core::FenceDecision& decision) {
  StandingFence out;
  out.fence.generation = request.pass.generation;
  out.fence.resource = request.pass.resource.text();
  out.fence.token = request.pass.token;
  out.fence.nobodys = decision.fence && decision.fence->nobodys;
  const StandingFence* before = highest(survey);
  const bool goes_over = before != nullptr && !of_line(*before, request.pass);
  out.life = (before == nullptr ? 0 : before->life) + (goes_over || !survey.torn.empty() ? 1 : 0);
  if (request.pass.claim && !request.by_order) {
    out.check = holder_check(*request.pass.claim, out.fence);
  }
  return out;
}

// Refused where another claim made the fence of our own token. G12
Status by_the_same_holder(const StandingFence& fence, const Pass& pass, const Site& site) {
  if (fence.check.empty() || !pass.claim) return {};
  if (fence.check == holder_check(*pass.claim, fence.fence)) return {};
  return issued_twice(pass, site.target());
}

// The fence that core is asked about. For an adoption: one of another life or resource, if there is
// any, for it is that one that an operator speaks about; lives side by side are no obstacle then.
Result<std::optional<StandingFence>> fence_for(const SealRequest& request, const Survey& survey) {
  if (!request.adopt) {
    if (!survey.torn.empty()) return torn_error(survey);
    auto top = ruling(survey);
    // What came along with a publish does not let its own token in: a newer holder may have sealed
    // in the folder that stood here before. As if there were none, the store decides. G5
    if (top && *top && (*top)->carried && own(**top, request.pass)) return {std::nullopt};
    return top;
  }
  const StandingFence* top = highest(survey);
  // What cannot be understood may have been newer: the store has to say which token is the newest.
  if (top == nullptr || !survey.torn.empty()) return std::optional<StandingFence>();
  for (const StandingFence& one : survey.fences) {
    if (one.life == top->life && !same_line(one, *top) && !of_line(one, request.pass)) {
      return std::optional(one);
    }
  }
  return std::optional(*top);
}

// Removes what is below the own fence, which stands and rules. The names are of one listing that
// was made after the own fence had its name: whoever stages later sees the fence.
Status remove_lower(Site& site, const SealRequest& request, const std::vector<BesideName>& names,
                    const std::string& own_fence) {
  const Pass& pass = request.pass;
  const std::string own_mark = used_name(site.name(), pass.token, pass.generation);
  bool unstaged = false;
  for (const BesideName& one : names) {
    const bool lower = !made_by(one, line_of(pass)) || one.token < pass.token;
    switch (one.kind) {
      case Beside::Fence:
        if (one.name == own_fence) continue;
        break;
      case Beside::Carried: break;
      case Beside::Used:
        if (one.name == own_mark) continue;
        break;
      case Beside::Stage:
      case Beside::Seal:
        if (!lower) continue;
        unstaged = true;
        break;
      case Beside::Trash: break;
    }
    if (auto done = site.discard(one); !done) return done;
  }
  // A stage that a power cut brings back could still be put in place from another machine.
  return unstaged ? site.sync("removing what was staged") : Status();
}

struct OwnFence {
  std::string name;
  bool already = false;
};

// Finds one's own fence ruling, or makes it. Empty: look again.
Result<std::optional<OwnFence>> stand(Site& site, const SealRequest& request, const Survey& survey,
                                      const core::FenceDecision& decision) {
  const Pass& pass = request.pass;
  const StandingFence* top = highest(survey);
  if (top != nullptr && own(*top, pass)) {
    auto ours = by_the_same_holder(*top, pass, site);
    if (!ours) return ours.error();
    if (!top->carried) return std::optional(OwnFence{top->name, true});
  }
  StandingFence made = fence_of(request, survey, decision);
  // The short name is for the first life alone: a number of one store's life must never be taken
  // for that of another by its name.
  made.name = made.life == 0 ? fence_name(site.name(), pass.token)
                             : long_fence_name(site.name(), pass.token, line_of(pass));
  keep_out_of_git(os::parent_of(site.path()));  // before it is there
  auto number = site.make(made.name, fence_text(made), pass);
  if (!number) return number.error();
  if (*number != 0) return std::optional<OwnFence>();
  return std::optional(OwnFence{made.name, false});
}

// Whether the own fence rules in a listing; reads only where another one stands beside it.
Result<bool> rules(const Site& site, const SealRequest& request,
                   const std::vector<BesideName>& names, const std::string& own_fence) {
  bool alone = true;
  bool there = false;
  for (const BesideName& one : names) {
    if (one.kind != Beside::Fence && one.kind != Beside::Carried) continue;
    if (one.name == own_fence) {
      there = true;
    } else {
      alone = false;
    }
  }
  if (alone) return there;
  auto survey = site.survey(names);
  if (!survey) return survey.error();
  const StandingFence* top = highest(*survey);
  if (top == nullptr || top->name != own_fence) return false;
  if (request.adopt) return true;
  if (!survey->torn.empty()) return torn_error(*survey);
  if (auto one = ruling(*survey); !one) return one.error();
  return true;
}

// The name of the own fence among those listed; empty: it is not there.
std::string own_fence_in(const std::vector<BesideName>& names, const std::string& artifact,
                         const Pass& pass) {
  std::string found;
  const std::string long_name = long_fence_name(artifact, pass.token, line_of(pass));
  for (const BesideName& one : names) {
    if (one.name == long_name) return long_name;
    if (one.kind == Beside::Fence && one.token == pass.token && one.rest.empty()) found = one.name;
  }
  return found;
}

}  // namespace

Result<std::optional<StandingFence>> ruling(const Survey& survey) {
  const StandingFence* top = highest(survey);
  if (top == nullptr) return std::optional<StandingFence>();
  for (const StandingFence& one : survey.fences) {
    if (one.life == top->life && !same_line(one, *top)) {
      return unavailable(cat("fences of two stores or two resources stand side by side: ",
                             quoted(one.name), " and ", quoted(top->name),
                             ". Nothing is admitted until an operator has decided which one counts "
                             "(docs/guides/guard-files.md)"));
    }
  }
  return std::optional(*top);
}

bool own(const StandingFence& fence, const Pass& pass) {
  return of_line(fence, pass) && fence.fence.token == pass.token;
}

Result<SealAnswer> seal_site(Site& site, const SealRequest& request, api::Fences* fences) {
  bool already = true;
  // A publish may have put another folder in the place of the one that was opened: a fence there
  // guards nothing any more. G5
  const auto in_another = [&]() -> Result<bool> {
    if (site.stands()) return false;
    already = false;
    auto opened = site.reopen();
    return opened ? Result<bool>(true) : Result<bool>(opened.error());
  };
  bool was_none = false;
  for (int tries = 0; tries < kMostSealTries; ++tries) {
    auto survey = site.survey();
    if (!survey) return survey.error();
    auto fence = fence_for(request, *survey);
    if (!fence) return fence.error();
    Refused why;
    why.target = site.target();
    auto decision =
        judge_seal(*fence ? std::optional((*fence)->fence) : std::nullopt, request, fences, &why);
    if (!decision) return decision.error();
    if (!admitted(decision->verdict)) return why;
    if (tries == 0) was_none = survey->fences.empty() && survey->torn.empty();
    auto own_fence = stand(site, request, *survey, *decision);
    if (!own_fence) {
      if (auto moved = in_another(); moved && *moved) continue;
      return own_fence.error();
    }
    if (!*own_fence) continue;
    already = already && (*own_fence)->already;
    // Also where it stood before: who made it may have died before it was durable.
    if (auto synced = site.sync("raising the fence"); !synced) return synced.error();
    auto names = site.list();
    if (!names) return names.error();
    auto top = rules(site, request, *names, (*own_fence)->name);
    if (!top) return top.error();
    if (!*top) continue;
    if (auto gone = remove_lower(site, request, *names, (*own_fence)->name); !gone) {
      return gone.error();
    }
    auto moved = in_another();
    if (!moved) return moved.error();
    if (!*moved) {
      return Sealed{.already = already, .was_none = was_none, .narrow = site.narrow()};
    }
  }
  return unavailable(cat("the fences of ", quoted(site.target()), " change too fast"));
}

bool may_stand(const Site& site, const Pass& pass) {
  auto survey = site.survey();
  return !survey || !survey->torn.empty() ||
         std::ranges::any_of(survey->fences, [&](const auto& one) { return own(one, pass); });
}

namespace {

// The store says that a fence stood here, and none was seen. What is told as sealed has a fence
// already: another process may have made it since we looked.
Status not_missing(const Site& site) {
  auto again = site.survey();
  if (!again) return again.error();
  if (!again->fences.empty() || !again->torn.empty()) return {};
  return unavailable(cat("the fence of ", quoted(site.target()),
                         " is missing, although it was sealed before: it was removed, or this "
                         "is a restored copy. Nothing was written. The present holder's next "
                         "write or seal makes it anew"));
}

}  // namespace

Result<SealAnswer> sealed_for_writing(Site& site, const Pass& pass, api::Fences* fences) {
  if (pass.token.issued()) {
    const std::string line = line_of(pass).hex();
    for (const BesideName& mine :
         {BesideName{fence_name(site.name(), pass.token), Beside::Fence, pass.token, {}},
          BesideName{long_fence_name(site.name(), pass.token, line_of(pass)), Beside::Fence,
                     pass.token, line}}) {
      auto fence = site.read_fence(mine);
      // A revocation's is judged below.
      if (fence && own(*fence, pass) && !fence->fence.nobodys) {
        auto ours = by_the_same_holder(*fence, pass, site);
        if (!ours) return ours.error();
        return Sealed{.already = true, .narrow = site.narrow()};
      }
      if (!fence && fence.error().code != Code::Lost) return fence.error();
    }
  }
  auto survey = site.survey();
  if (!survey) return survey.error();
  const SealRequest request{.pass = pass, .by_order = false, .adopt = std::nullopt};
  auto fence = fence_for(request, *survey);
  if (!fence) return fence.error();
  Refused why;
  why.target = site.target();
  if (!pass.token.issued() && !*fence) {
    return invalid(cat("no token was given for ", quoted(site.target()),
                       ": write inside 'stint run', or give --token"));
  }
  auto decision =
      judge_seal(*fence ? std::optional((*fence)->fence) : std::nullopt, request, fences, &why);
  if (!decision) return decision.error();
  if (!admitted(decision->verdict)) return why;
  if (*fence && own(**fence, pass)) return seal_site(site, request, fences);
  auto word = fences->word(pass.resource);
  if (!word) return word.error();
  const Memory known = memory_of(*word, site.target());
  // The store's word of this moment is the simpler evidence: nobody newer can have sealed it.
  if (!*fence && known == Memory::Sealed && !is_present_holder(*word, pass)) {
    if (auto there = not_missing(site); !there) return there.error();
  }
  // Before the fence stands, so that a transfer or a revocation knows of it. If it does already:
  // that this token is still the newest, in the same reading, says as much.
  const core::Offer offer = offer_of(pass, "");
  auto remembered = known == Memory::Sealed ? core::seal(std::nullopt, offer, word->issued).verdict
                                            : fences->remember(offer, {site.target()});
  if (!remembered) return remembered.error();
  if (!admitted(*remembered)) {
    why.verdict = *remembered;
    return why;
  }
  auto sealed = seal_site(site, request, fences);
  if (const auto* done = sealed ? std::get_if<Sealed>(&*sealed) : nullptr) {
    const bool anew = known == Memory::Sealed && done->was_none;
    tell_standing(*fences, request, {site.target()},
                  anew ? core::Sealing::MadeAnew : core::Sealing::Stands);
  } else if (known == Memory::None && !may_stand(site, pass)) {
    take_back(*fences, request, site.target());
  }
  return sealed;
}

Result<SealAnswer> may_land(Site& site, const Pass& pass, api::Fences* fences) {
  const SealRequest request{.pass = pass, .by_order = false, .adopt = std::nullopt};
  for (int tries = 0; tries < kMostSealTries; ++tries) {
    auto names = site.list();
    if (!names) return names.error();
    const std::string own_fence = own_fence_in(*names, site.name(), pass);
    auto top = rules(site, request, *names, own_fence);
    if (!top) return top.error();
    if (*top) {
      // Whoever made this fence may have died before it removed what lower tokens had staged.
      if (auto gone = remove_lower(site, request, *names, own_fence); !gone) return gone.error();
      return Sealed{.already = true, .narrow = site.narrow()};
    }
    // Another fence rules: core says what that means. If it has gone already, its successor rules.
    auto sealed = seal_site(site, request, fences);
    if (!sealed || std::holds_alternative<Refused>(*sealed)) return sealed;
  }
  return unavailable(cat("the fences of ", quoted(site.target()), " change too fast"));
}

Result<SealAnswer> is_live(const Site& site, const Pass& pass, api::Fences* fences) {
  if (!pass.require_live) return Sealed{};
  if (fences == nullptr) {
    return unavailable("the store cannot be asked whether the lease is live; nothing was changed");
  }
  auto word = fences->word(pass.resource);
  if (!word) return word.error();
  if (word->live && word->issued.newest == pass.token &&
      word->issued.generation == pass.generation) {
    return Sealed{};
  }
  Refused why;
  why.target = site.target();
  why.offered = pass.token;
  why.newest_owner = word->owner;
  why.condition = Condition::RequireLive;
  return why;
}

}  // namespace stint::guard
