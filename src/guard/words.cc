#include "guard/words.h"

#include "api/wire.h"
#include "base/check.h"
#include "base/json_text.h"
#include "base/text.h"

namespace stint::guard {
namespace {

std::string_view cause_of(const Refused& refused) {
  if (refused.condition == Condition::IfMatch) return "mismatch";
  if (refused.condition == Condition::RequireLive) return "not_live";
  if (refused.condition == Condition::ServerHook) return "server_hook";
  return refused.verdict == core::Verdict::Restored ? "restored" : word(code_of(refused.verdict));
}

std::string newest(const Refused& refused) {
  return refused.newest_owner.empty()
             ? std::string()
             : cat("; the newest token belongs to ", quoted(refused.newest_owner.text()));
}

std::string fence_words(const Refused& refused) {
  if (!refused.fence) return "a newer token was issued";
  return cat("the fence stands at token ", refused.fence->token.number());
}

std::string what_happened(const Refused& refused, const Pass& pass) {
  if (refused.condition == Condition::IfMatch) {
    return "what stands there is not what --if-match names. Read it again, and decide anew";
  }
  if (refused.condition == Condition::RequireLive) {
    return cat("the lease has run out or is another's, and --require-live was given",
               newest(refused), ". Acquire it anew before reading and writing again");
  }
  if (refused.condition == Condition::ServerHook) {
    return "the hook on the server does not take it. Look whether resource and --fence-ref are "
           "those that the server's administrator has set";
  }
  switch (refused.verdict) {
    case core::Verdict::Stale:
      return cat(fence_words(refused), newest(refused),
                 ". This run is no longer the holder: stop, and acquire the lease anew before "
                 "reading and writing again");
    case core::Verdict::Used:
      return "this token's one write was made already (--mode once), with another key or content. "
             "Look at what stands there; a further write needs a new grant";
    case core::Verdict::NeverIssued:
      return "the store never issued that token. Look whether it is the right store and resource";
    case core::Verdict::NeverGranted:
      return "nobody was ever granted that token (it is a revocation's or a transfer's). Acquire "
             "the lease first";
    case core::Verdict::Foreign:
      if (refused.fence && refused.fence->resource != pass.resource.text()) {
        return cat("this target is fenced for the resource ", quoted(refused.fence->resource),
                   ". Hold that one, or choose another target");
      }
      return "the token is of another store's life than the fence, and the two do not compare. "
             "Look whether it is the right store; an operator decides whether this target changes "
             "its store";
    case core::Verdict::NoToken:
      return "the target is fenced, and no token was given. Write inside 'stint run', or give "
             "--token";
    case core::Verdict::Restored:
      return "the fence is above anything that this store has issued: the store was restored and "
             "went back in time. An operator has to settle that at the store first "
             "(docs/guides/restore.md)";
    case core::Verdict::Admitted:
    case core::Verdict::Done:
    case core::Verdict::AskStore: break;
  }
  CHECK(false, "not a refusal");
}

}  // namespace

Code code_of(core::Verdict verdict) {
  CHECK(is_refusal(verdict), "not a refusal");
  return api::code_of(verdict);
}

Error error_of(const Refused& refused, const Pass& pass) {
  std::string message = cat(quoted(refused.target), " refused ");
  if (refused.offered.issued()) message += cat("token ", refused.offered.number(), " of ");
  message += cat(quoted(pass.resource.text()), ": ", what_happened(refused, pass));
  if (!refused.detail.empty()) message += cat(" (", refused.detail, ")");
  message += refused.warned                               ? "."
             : refused.condition == Condition::ServerHook ? ". The branch was not changed."
                                                          : ". Nothing was changed.";
  return {code_of(refused.verdict), std::move(message)};
}

std::string to_json(const Refused& refused, const Pass& pass) {
  const Error error = error_of(refused, pass);
  JsonText inner;
  inner.field("code", word(error.code))
      .field("message", error.message)
      .field("cause", cause_of(refused))
      .field("target", refused.target)
      .field("resource", pass.resource.text())
      .field("token", static_cast<std::int64_t>(refused.offered.number()));
  if (refused.fence) {
    inner.field("fence", static_cast<std::int64_t>(refused.fence->token.number()));
  }
  inner.field_if("owner", refused.newest_owner.text());
  return cat("{\"error\":", inner.done(), "}");
}

}  // namespace stint::guard
