// What guards ask.
#include "base/text.h"
#include "server/routes.h"

namespace stint::server {
namespace {

// The offer of the request, within the caller's reach.
Result<core::Offer> read_reachable_offer(Request& request, JsonFields& in) {
  auto offer = api::read_offer(in);
  if (auto ok = in.done(); !ok) return ok.error();
  if (!request.caller.reaches(offer->resource))
    return out_of_reach(request.caller, offer->resource);
  // An operator's words.
  if ((offer->by_order || offer->adopt) && !request.caller.may(api::rights(api::Right::Operate))) {
    return Error{Code::Denied, "'by_order' and 'adopt' need a key that allows 'operate'"};
  }
  return std::move(*offer);
}

// One answer for whatever is there, or is not: it names nothing.
Error hidden() {
  return {Code::Denied,
          "this key does not reach that fence: it binds names under its own prefixes"};
}

// A name of another prefix is reached only by who has bound it before there was this rule.
Status reach_fence(Request& request, const std::string& target) {
  if (request.caller.reaches(api::owned_part(target))) return {};
  auto fence = request.fences().fence(target);
  if (!fence) return fence.error();
  if (*fence && request.caller.reaches((*fence)->resource)) return {};
  return hidden();
}

// An adoption takes a fence only from where the caller reaches.
Status limit_adoption(Request& request, const std::string& target, core::Offer& offer) {
  if (!offer.adopt || request.caller.reaches("")) return {};
  auto fence = request.fences().fence(target);
  if (!fence) return fence.error();
  offer.adopt_from = *fence ? (*fence)->resource : offer.resource;
  return request.caller.reaches(offer.adopt_from) ? Status() : Status(hidden());
}

// What an answer tells of another prefix is not told.
Answer within_reach(Request& request, const api::FenceAnswer& answer, const core::Offer& offer) {
  const bool fence = !answer.fence || request.caller.reaches(answer.fence->resource);
  const bool act = !answer.act || request.caller.reaches(answer.act->resource);
  if (!fence || !act) return fault_answer(hidden());
  request.metrics.fenced(answer.verdict);
  return fence_answer(answer, offer);
}

using Raise = Result<api::FenceAnswer> (api::Fences::*)(const std::string&, const core::Offer&);

Answer raise(Request& request, Raise how) {
  JsonFields in(request.body);
  in.require("target");
  const std::string target = in.text("target");
  auto offer = read_reachable_offer(request, in);
  if (!offer) return fault_answer(offer.error());
  in.refuse_others();
  if (auto fine = in.done(); !fine) return fault_answer(fine.error());
  if (auto mine = reach_fence(request, target); !mine) return fault_answer(mine.error());
  if (auto fine = limit_adoption(request, target, *offer); !fine) return fault_answer(fine.error());
  auto answer = (request.fences().*how)(target, *offer);
  if (!answer) return fault_answer(answer.error());
  return within_reach(request, *answer, *offer);
}

using Step = Result<api::FenceAnswer> (api::Fences::*)(const api::Act&, const core::Offer&);

Answer act(Request& request, Step how) {
  JsonFields in(request.body);
  auto offer = read_reachable_offer(request, in);
  if (!offer) return fault_answer(offer.error());
  const JsonValue* told = in.find("act");
  in.refuse_others();
  if (told == nullptr) in.fail("'act' is missing");
  if (auto fine = in.done(); !fine) return fault_answer(fine.error());
  auto meant = api::parse_act(*told);
  if (!meant) return fault_answer(meant.error());
  if (request.caller.key && !meant->owner.empty()) {
    auto owner = request.caller.owner(meant->owner.text());
    if (!owner) return fault_answer(owner.error());
    meant->owner = *owner;
  }
  const std::string target = api::admit_target(meant->name);
  if (auto mine = reach_fence(request, target); !mine) return fault_answer(mine.error());
  auto answer = (request.fences().*how)(*meant, *offer);
  if (!answer) return fault_answer(answer.error());
  return within_reach(request, *answer, *offer);
}

// Later holders seal what is remembered, on their machines: only who holds the lease may say what,
// or an operator. By the word on this very token: a token never gets another owner.
std::optional<Answer> may_not_remember(Request& request, const core::Offer& offer) {
  const Caller& caller = request.caller;
  if (!caller.key || caller.may(api::rights(api::Right::Operate))) return std::nullopt;
  auto resource = ResourceName::parse(offer.resource);
  if (!resource) return fault_answer(resource.error());
  auto word = request.fences().word(*resource);
  if (!word) return fault_answer(word.error());
  const core::Verdict verdict = core::seal(std::nullopt, offer, word->issued).verdict;
  // Also a token that would become the newest in the next moment.
  if (verdict != core::Verdict::Admitted) {
    request.metrics.fenced(verdict);
    return fence_answer({.verdict = verdict, .fence = {}, .owner = word->owner}, offer);
  }
  if (word->owner.text().starts_with(caller.name() + "/")) return std::nullopt;
  return fault_answer(
      {Code::Denied, cat("token ", offer.token.number(), " of ", quoted(offer.resource),
                         " belongs to no run of the key ", quoted(caller.name()),
                         ": what its holders have sealed is theirs to say, or needs "
                         "a key that allows 'operate'")});
}

}  // namespace

Answer token_word(Request& request) {
  auto resource = query_resource(request);
  if (!resource) return fault_answer(resource.error());
  auto word = request.fences().word(*resource);
  if (!word) return fault_answer(word.error());
  // Even its hash is for who has to do with leases: a look is shown none.
  constexpr api::Rights kConcerned =
      static_cast<api::Rights>(api::Right::Acquire | api::Right::Admit) |
      api::rights(api::Right::Operate);
  if (!request.caller.may(kConcerned)) word->claim = {};
  return ok(api::to_json(*word));
}

Answer sealed_targets(Request& request) {
  auto resource = query_resource(request);
  if (!resource) return fault_answer(resource.error());
  auto sealed = request.fences().sealed(*resource);
  if (!sealed) return fault_answer(sealed.error());
  return ok(cat("{\"targets\":", api::to_json(*sealed), "}"));
}

Answer remember_targets(Request& request) {
  JsonFields in(request.body);
  auto offer = read_reachable_offer(request, in);
  if (!offer) return fault_answer(offer.error());
  in.require("targets");
  const std::vector<std::string> targets = in.texts("targets");
  in.refuse_others();
  if (auto fine = in.done(); !fine) return fault_answer(fine.error());
  for (const std::string& target : targets) {
    if (!request.serve.backend.check_target) break;
    if (auto fine = request.serve.backend.check_target(target); !fine) {
      return fault_answer(fine.error());
    }
  }
  core::Offer plain = *offer;
  plain.mode = core::FenceMode::AtLeast;
  if (auto refused = may_not_remember(request, plain)) return std::move(*refused);
  auto verdict = request.fences().remember(*offer, targets);
  if (!verdict) return fault_answer(verdict.error());
  request.metrics.fenced(*verdict);
  return fence_answer({.verdict = *verdict, .fence = {}, .owner = {}}, *offer);
}

Answer forget_target(Request& request) {
  JsonFields in(request.body);
  auto resource = read_resource(request, in);
  if (!resource) return fault_answer(resource.error());
  in.require("target");
  const std::string target = in.text("target");
  api::ForgetWord word{.why = in.text("why"), .by = in.text("by")};
  in.refuse_others();
  if (auto fine = in.done(); !fine) return fault_answer(fine.error());
  // Who says so is who has the key; what they call themselves stands behind it.
  if (request.caller.key) {
    const std::string mine = request.caller.name();
    word.by = word.by.empty() || word.by == mine ? mine : cat(mine, "/", word.by);
  }
  for (const std::string& text : {word.why, word.by}) {
    constexpr std::size_t kMostBytes = 2048;
    if (text.size() > kMostBytes || !is_utf8(text) || has_control(text)) {
      return fault_answer(invalid("'why' and 'by' are UTF-8 in one line, of at most 2048 bytes"));
    }
  }
  if (auto done = request.fences().forget(*resource, target, word); !done)
    return fault_answer(done.error());
  return ok("{\"forgotten\":true}");
}

Answer admit(Request& request) { return raise(request, &api::Fences::admit); }
Answer seal(Request& request) { return raise(request, &api::Fences::seal); }
Answer begin_act(Request& request) { return act(request, &api::Fences::begin); }
Answer finish_act(Request& request) { return act(request, &api::Fences::finish); }

Answer get_fence(Request& request) {
  const std::string target = query_text(request, "target");
  if (target.empty()) return fault_answer(invalid("'target' is missing in the query"));
  if (auto mine = reach_fence(request, target); !mine) return fault_answer(mine.error());
  auto fence = request.fences().fence(target);
  if (!fence) return fault_answer(fence.error());
  if (*fence && !request.caller.reaches((*fence)->resource)) return fault_answer(hidden());
  return ok(cat("{\"fence\":", *fence ? api::to_json(**fence) : std::string("null"), "}"));
}

Answer get_act(Request& request) {
  const std::string name = query_text(request, "name");
  const std::string key = query_text(request, "key");
  if (name.empty() || key.empty()) {
    return fault_answer(invalid("'name' and 'key' are missing in the query"));
  }
  const std::string target = api::admit_target(name);
  if (auto mine = reach_fence(request, target); !mine) return fault_answer(mine.error());
  auto found = request.fences().act(name, key);
  if (!found) return fault_answer(found.error());
  if (*found && !request.caller.reaches((*found)->resource)) return fault_answer(hidden());
  return ok(cat("{\"act\":", *found ? api::to_json(**found) : std::string("null"), "}"));
}

}  // namespace stint::server
