// stint transfer, revoke, forget: the operator's verbs. They obey the same law as everybody.
#include <array>

#include "api/json.h"
#include "app/guards.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/seals.h"
#include "cli/session.h"
#include "os/host.h"

namespace stint::cli {
namespace {

constexpr Option kExpected = {"--token", "N", "the token that you saw: refused if it has moved on"};
constexpr Option kWhy = {"--why", "TEXT", "the reason, for the record (required)"};
constexpr Option kBy = {"--by", "WHO", "who orders it (default: the user's name)"};

Result<api::OrderRequest> order_of(Session& session) {
  auto resource = session.resource();
  if (!resource) return resource.error();
  const auto why = session.words().value("--why");
  if (!why) return invalid("--why TEXT is missing: the reason is kept on record");
  const auto expected = session.words().value("--token");
  if (!expected)
    return invalid("--token N is missing: the token that you saw (stint show tells it)");
  auto token = Token::parse(*expected);
  if (!token) return invalid(cat("--token: ", token.error().message));
  return api::OrderRequest{*resource, *token, *why,
                           session.words().value("--by").value_or(os::user_name())};
}

// The former owner's run is stopped by its renewals, but a target learns of the new token only by a
// seal: the order is done when the known targets have it.
int tell(Session& session, app::Opened& opened, const Result<api::HoldAnswer>& answer,
         const api::OrderRequest& order, std::string_view done) {
  if (!answer) return session.fail(answer.error());
  if (const auto* lost = std::get_if<api::Lost>(&*answer)) {
    return session.lost(*lost, order.expected);
  }
  const api::Lease& lease = std::get<api::Held>(*answer).lease;
  auto reports = app::seal_by_order(app::guards(), order.resource, lease.token, lease.generation,
                                    opened.fences(), opened.events(), session.clock());
  const std::string words =
      cat(quoted(lease.resource), done, "; the token is now ", lease.token.number());
  session.did(words);
  if (session.json()) {
    session.print(with_seals(api::to_json(lease), reports ? *reports : SealReports()));
  } else {
    session.say(words);
  }
  if (!reports) {
    session.warn(
        cat("the order is carried out, but which targets to seal could not be read, so "
            "none was: ",
            reports.error().message));
    return kFailed;
  }
  return tell_seals(session, *reports);
}

int transfer_command(Session& session) {
  auto order = order_of(session);
  if (!order) return session.fail(order.error());
  const auto to = session.words().value("--to");
  if (!to) return session.fail(invalid("--to OWNER is missing"));
  auto owner = Owner::parse(*to);
  if (!owner) return session.fail(owner.error());
  auto ttl = session.duration("--ttl", Millis(0));
  if (!ttl) return session.fail(ttl.error());
  // There is one; revoke has several.
  if (session.words().value("--reason").value_or("transferred") != "transferred") {
    return session.fail(invalid("--reason of a transfer is transferred"));
  }
  auto opened = session.open();
  if (!opened) return session.fail(opened.error());
  return tell(session, **opened, (*opened)->leases().transfer(*order, *owner, *ttl), *order,
              cat(" is reserved for ", quoted(owner->text())));
}

int revoke_command(Session& session) {
  auto order = order_of(session);
  if (!order) return session.fail(order.error());
  core::Reason reason = core::Reason::Revoked;
  if (const auto text = session.words().value("--reason")) {
    const auto parsed = core::parse_reason(*text);
    const bool allowed = parsed == core::Reason::Revoked || parsed == core::Reason::Cancelled ||
                         parsed == core::Reason::Stalled;
    if (!allowed) return session.fail(invalid("--reason is one of revoked, cancelled, stalled"));
    reason = *parsed;
  }
  auto opened = session.open();
  if (!opened) return session.fail(opened.error());
  return tell(session, **opened, (*opened)->leases().revoke(*order, reason), *order, " is revoked");
}

int forget_command(Session& session) {
  auto resource = session.resource();
  if (!resource) return session.fail(resource.error());
  auto opened = session.open();
  if (!opened) return session.fail(opened.error());
  auto floor = (*opened)->leases().forget(*resource);
  if (!floor) return session.fail(floor.error());
  if (session.json()) {
    session.print(api::to_json(std::vector<api::JsonField>{
        {"resource", resource->text()}, {"floor", static_cast<std::int64_t>(floor->number())}}));
  } else {
    session.say(
        cat(quoted(resource->text()), " is forgotten; every new token is above ", floor->number()));
  }
  return kDone;
}

constexpr std::array<Option, 6> kTransferOptions = {
    {{"--to", "OWNER", "the owner that it is reserved for"},
     kWhy,
     kExpected,
     kBy,
     {"--reason", "WORD", "transferred (default)"},
     {"--ttl", "D", "how long the reservation lasts (default: the lease's own ttl)"}}};
constexpr std::array<Option, 4> kRevokeOptions = {
    {kWhy, kExpected, kBy, {"--reason", "WORD", "revoked (default), cancelled or stalled"}}};
constexpr std::array<std::string_view, 1> kTransferExamples = {
    "stint transfer blog-repo --to host-b --why 'host-a goes down' --token 7"};
constexpr std::array<std::string_view, 1> kRevokeExamples = {
    "stint revoke blog-repo --why 'runs amok' --token 7"};
constexpr std::array<std::string_view, 1> kForgetExamples = {"stint forget old/preview-17"};

}  // namespace

const Command kTransfer = {
    .name = "transfer",
    .operands = "RESOURCE --to OWNER --why TEXT --token EXPECTED",
    .summary = "move a lease to another owner: the token moves, the former owner's run is stopped",
    .details =
        "The resource is reserved for OWNER, whose next acquire or run takes it up with that very "
        "token. Works on a free or expired one too: that is how a late writer is shut out by hand. "
        "The targets that its holders have sealed are sealed with the new token before it is done; "
        "exit 1 if one was not reached.\n"
        "At a server with keys an owner is KEYNAME/label, and OWNER is taken as it is written: say "
        "--to KEYNAME/label, or nobody can take it up until the reservation ends.",
    .examples = kTransferExamples,
    .options = kTransferOptions,
    .least_operands = 1,
    .most_operands = 1,
    .runs_command = false,
    .run = transfer_command,
};

const Command kRevoke = {
    .name = "revoke",
    .operands = "RESOURCE --why TEXT --token EXPECTED",
    .summary = "end a lease by order: the token moves and belongs to nobody, the run is stopped",
    .details =
        "Works on a free or expired one too: that is how a late writer is shut out by hand. "
        "Needs the token that you saw, so that it never hits a newer holder. The targets that its "
        "holders have sealed are sealed with the new token before it is done; exit 1 if one was "
        "not "
        "reached.",
    .examples = kRevokeExamples,
    .options = kRevokeOptions,
    .least_operands = 1,
    .most_operands = 1,
    .runs_command = false,
    .run = revoke_command,
};

const Command kForget = {
    .name = "forget",
    .operands = "RESOURCE",
    .summary = "drop the record of a free resource that will not come again",
    .details =
        "The store's floor is raised to its token first, so that no token is ever issued twice. "
        "Its history goes with it.",
    .examples = kForgetExamples,
    .options = {},
    .least_operands = 1,
    .most_operands = 1,
    .runs_command = false,
    .run = forget_command,
};

}  // namespace stint::cli
