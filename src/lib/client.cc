// stint::Client
#include "app/guards.h"
#include "app/listing.h"
#include "base/text.h"
#include "lib/client_state.h"
#include "lib/faces.h"
#include "os/begin.h"
#include "os/host.h"
#include "stint/stint.h"

namespace stint {
namespace {

// The program's own way to its settings, with the store that was given in the place of STINT_STORE:
// a program's own string may have a password in it, other than a flag that everybody can list.
Result<app::Settings> settings_for(const std::string& store) {
  const app::Environment environment = app::Environment::current();
  if (store.empty()) return app::resolve(environment, {});
  if (auto url = app::parse_store_url(store); !url) return url.error();
  auto values = environment.all();
  values["STINT_STORE"] = store;
  values.erase("STINT_STORE_FILE");
  return app::resolve(app::Environment(std::move(values)), {});
}

Result<api::OrderRequest> request_for(const Order& order) {
  auto resource = ResourceName::parse(order.resource);
  if (!resource) return resource.error();
  if (order.why.empty()) return invalid("an order needs a reason: why is empty");
  return api::OrderRequest{*resource, Token(order.expected), order.why,
                           order.by.empty() ? os::user_name() : order.by};
}

}  // namespace

Outcome<Client> Client::open(const ClientOptions& options) {
  // The host may run without them, and the store's files would take their numbers.
  os::make_standard_descriptors();
  auto settings = settings_for(options.store);
  if (!settings) return settings.error();
  if (!options.owner.empty()) {
    if (auto owner = Owner::parse(options.owner); !owner) return owner.error();
  }
  // Shared with the Holders.
  const std::shared_ptr<lib::ClientState> state(new lib::ClientState,
                                                lib::end_at_birthplace<lib::ClientState>);
  state->settings = std::move(*settings);
  if (state->settings.store_url.scheme == "sqlite") {
    if (auto ok = state->sqlite.begin(); !ok) return ok.error();
  }
  state->owner = options.owner;
  auto opened = app::Opened::open({.url = state->settings.store_url,
                                   .state_directory = state->settings.state_directory,
                                   .may_create = options.may_create,
                                   .key = state->settings.key},
                                  state->clock, state->random);
  if (!opened) return opened.error();
  state->opened = std::move(*opened);
  return Client(state);
}

Outcome<Lease> Client::get(std::string_view resource) const {
  if (auto ok = state_->usable(); !ok) return ok.error();
  auto name = ResourceName::parse(resource);
  if (!name) return name.error();
  auto lease = state_->leases().get(*name);
  if (!lease) return lease.error();
  return lib::face(*lease);
}

Outcome<std::vector<Lease>> Client::list(std::string_view prefix) const {
  if (auto ok = state_->usable(); !ok) return ok.error();
  auto all = app::all_leases(state_->leases(), std::string(prefix));
  if (!all) return all.error();
  std::vector<Lease> out;
  for (const api::Lease& lease : *all) out.push_back(lib::face(lease));
  return out;
}

namespace {

// The order is done when the targets that are known to be sealed have its token too.   G5
Outcome<Lease, Lost> sealed(const lib::ClientState& state, const api::OrderRequest& order,
                            const Result<api::HoldAnswer>& answer) {
  if (!answer || std::holds_alternative<api::Lost>(*answer)) {
    return lib::face(answer, order.expected);
  }
  const api::Lease& lease = std::get<api::Held>(*answer).lease;
  auto reports = app::seal_by_order(app::guards(), order.resource, lease.token, lease.generation,
                                    state.opened->fences(), state.opened->events(), state.clock);
  if (!reports)
    return std::move(reports.error()).during("sealing, after the order was carried out");
  std::string missing;
  for (const app::SealReport& report : *reports) {
    if (!report.shut()) missing += cat(" ", quoted(report.target), ": ", report.error.message);
  }
  if (missing.empty()) return lib::face(answer, order.expected);
  return Error{Code::Unavailable, cat("the order is carried out, and the token is now ",
                                      lease.token.number(), ", but not sealed is", missing)};
}

}  // namespace

Outcome<Lease, Lost> Client::revoke(const Order& order) const {
  if (auto ok = state_->usable(); !ok) return ok.error();
  auto request = request_for(order);
  if (!request) return request.error();
  return sealed(*state_, *request, state_->leases().revoke(*request, core::Reason::Revoked));
}

Outcome<Lease, Lost> Client::transfer(const Order& order, std::string_view to,
                                      std::chrono::milliseconds ttl) const {
  if (auto ok = state_->usable(); !ok) return ok.error();
  auto request = request_for(order);
  if (!request) return request.error();
  auto owner = Owner::parse(to);
  if (!owner) return owner.error();
  return sealed(*state_, *request, state_->leases().transfer(*request, *owner, ttl));
}

}  // namespace stint
