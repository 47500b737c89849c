// stint::Holder
#include <unistd.h>

#include <exception>

#include "base/check.h"
#include "base/text.h"
#include "lib/client_state.h"
#include "lib/faces.h"
#include "lib/hold.h"
#include "os/host.h"
#include "stint/stint.h"

namespace stint {
namespace {

// Far from where a deadline in nanoseconds would overflow.
constexpr std::chrono::hours kAsGoodAsForever{24 * 365};

struct Bid {
  holder::TakeRequest request;
  core::HoldSettings settings;
};

Result<Owner> owner_for(lib::ClientState& client, const AcquireOptions& options) {
  if (!options.owner.empty()) return Owner::parse(options.owner);
  if (!client.owner.empty()) return Owner::parse(client.owner);
  if (const auto& configured = client.settings.owner) return Owner::parse(configured->value);
  return Owner::parse(
      cat(os::host_name(), "-", ::getpid(), "-", client.random.id_hex().substr(0, 6)));
}

Result<core::Terms> terms_for(const lib::ClientState& client, const AcquireOptions& options) {
  core::Terms terms{.ttl = options.ttl,
                    .max_hold = options.max_hold,
                    .at_least = options.at_least,
                    .cooldown = options.cooldown};
  if (terms.ttl.count() == 0) {
    auto configured = parse_duration(client.settings.ttl.value);
    if (!configured) return configured.error();
    terms.ttl = *configured;
  }
  if (auto ok = core::check_terms(terms); !ok) return ok.error();
  return terms;
}

Result<core::HoldSettings> settings_for(const AcquireOptions& options, const core::Terms& terms) {
  const core::HoldSettings settings{
      .ttl = terms.ttl,
      .grace = options.stop_within.value_or(core::default_grace(terms.ttl)),
      .margin = core::default_margin(terms.ttl),
      .max_hold = terms.max_hold};
  if (settings.grace.count() < 0) return invalid("stop_within is negative");
  if (!core::check_settings(settings)) {
    return invalid(cat("a ttl of ", format_duration(settings.ttl),
                       " is too short for a stop_within of ", format_duration(settings.grace),
                       ": the work could not stop before the lease runs out"));
  }
  return settings;
}

Result<Bid> bid_for(lib::ClientState& client, const AcquireOptions& options) {
  auto resource = ResourceName::parse(options.resource);
  if (!resource) return resource.error();
  auto owner = owner_for(client, options);
  if (!owner) return owner.error();
  auto terms = terms_for(client, options);
  if (!terms) return terms.error();
  auto settings = settings_for(options, *terms);
  if (!settings) return settings.error();
  if (options.wait.count() < 0) return invalid("wait is negative");
  holder::TakeRequest request{.choices = {{*resource}},
                              .owner = *owner,
                              .terms = *terms,
                              .note = options.note,
                              .held = {},
                              .count_refusal = true};
  if (options.wait.count() > 0) {
    request.held.what = holder::OnHeld::Wait;
    if (options.wait < kAsGoodAsForever) request.held.patience = options.wait;
  }
  return Bid{std::move(request), *settings};
}

// The lease, or who is in the way.
Result<std::variant<holder::Taken, api::Refused>> take(lib::ClientState& client, const Bid& bid,
                                                       const std::stop_token& cancel) {
  auto cancelled = os::EventFd::make();
  if (!cancelled) return cancelled.error();
  const std::stop_callback on_cancel(cancel, [&cancelled] { cancelled->signal(); });
  const holder::Interruptions interruptions{
      .fd = cancelled->fd(),
      .take = [&cancel] { return cancel.stop_requested() ? std::optional<int>(0) : std::nullopt; }};
  std::optional<api::Refused> in_the_way;
  auto answer = holder::take(client.leases(), client.clock, client.random, bid.request,
                             interruptions, [&](const api::Refused& by) { in_the_way = by; });
  if (!answer) return answer.error();
  using Out = std::variant<holder::Taken, api::Refused>;
  if (auto* taken = std::get_if<holder::Taken>(&*answer)) return Out(std::move(*taken));
  client.opened->flush();
  if (auto* off = std::get_if<holder::WavedOff>(&*answer)) return Out(std::move(off->by));
  CHECK(in_the_way, "a wait was cancelled that had not begun");
  return Out(std::move(*in_the_way));
}

}  // namespace

BootClock::time_point BootClock::now() noexcept {
  return time_point(os::SystemClock().mono().time_since_epoch());
}

Outcome<Holder, Refused> Holder::acquire(const Client& client, const AcquireOptions& options) {
  return acquire(client.state_, options);
}

Outcome<Holder, Refused> Holder::acquire(const std::shared_ptr<lib::ClientState>& client,
                                         const AcquireOptions& options) {
  if (auto ok = client->usable(); !ok) return ok.error();
  auto bid = bid_for(*client, options);
  if (!bid) return bid.error();
  auto bell = os::EventFd::make();
  if (!bell) return bell.error();
  auto answer = take(*client, *bid, options.cancel);
  if (!answer) return answer.error();
  if (const auto* refused = std::get_if<api::Refused>(&*answer)) return lib::face(*refused);
  const auto& taken = std::get<holder::Taken>(*answer);
  // Shared with its own watching thread.
  const std::shared_ptr<lib::Hold> hold(
      new lib::Hold(client, options, bid->settings, taken, std::move(*bell)),
      lib::end_at_birthplace<lib::Hold>);
  Holder holder(hold);
  try {
    if (auto started = lib::Hold::start(hold); !started) {
      return Error{started.error().code,
                   cat("the lease was taken and given back: ", started.error().message)};
    }
  } catch (const std::exception& e) {
    return Error{Code::Failed,
                 cat("the lease was taken and given back: no thread to renew it: ", e.what())};
  }
  return holder;
}

Holder::Holder(Holder&& other) noexcept = default;

Holder& Holder::operator=(Holder&& other) noexcept {
  if (this == &other) return *this;
  end();
  hold_ = std::move(other.hold_);
  return *this;
}

Holder::~Holder() { end(); }

void Holder::end() noexcept {
  if (!hold_) return;
  // What cannot be released runs out by itself.
  [[maybe_unused]] const auto released = hold_->release();
  hold_.reset();
}

const std::string& Holder::resource() const { return hold_->grip().resource.text(); }
const std::string& Holder::owner() const { return hold_->granted().lease.owner.text(); }
std::uint64_t Holder::token() const { return hold_->grip().token.number(); }
const std::string& Holder::generation() const { return hold_->granted().lease.generation.hex(); }
const std::string& Holder::previous_progress() const { return hold_->granted().previous_progress; }

std::stop_token Holder::stop_token() const { return hold_->stop_token(); }
bool Holder::holding() const { return hold_->look(); }
BootClock::time_point Holder::deadline() const {
  return BootClock::time_point(hold_->deadline().time_since_epoch());
}
std::optional<Lost> Holder::lost() const { return hold_->lost(); }

Outcome<Lease, Lost> Holder::check() { return hold_->check(); }
Outcome<Lease, Lost> Holder::progress(std::string_view marker) {
  return hold_->progress(std::string(marker));
}
Outcome<Lease, Lost> Holder::release() { return hold_->release(); }

Outcome<Holder, Refused> Holder::reacquire() {
  if (auto ok = hold_->client()->usable(); !ok) return ok.error();
  if (hold_->look()) {
    return invalid(cat(quoted(resource()), " is still held with token ", token(),
                       ": there is nothing to acquire anew"));
  }
  // After the deadline the store may count it as held for a while: by us, who have stopped.
  [[maybe_unused]] const auto released = hold_->release();
  return acquire(hold_->client(), hold_->options());
}

}  // namespace stint
