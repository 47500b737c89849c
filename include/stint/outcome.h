// Outcome<Yes, No...>: what a call of the library comes back with. Nothing here throws.
//
// Exactly one of: what was asked for (Yes), a refusal that is an answer and no fault (No), or a
// fault of the world (Error). Error's code `UnknownOutcome` means: sent, no answer; it may have
// happened.
//
//   auto holder = stint::Holder::acquire(client, {.resource = "blog-repo"});
//   if (const auto* refused = holder.get_if<stint::Refused>()) return skip(refused->owner);
//   if (!holder) return fail(holder.error()->message);
//   publish(holder->token());
//
// Thread safety: that of a plain value.
#pragma once

#include <concepts>
#include <cstdlib>
#include <utility>
#include <variant>

#include "stint/error.h"

namespace stint {

template <class Yes, class... No>
class [[nodiscard]] Outcome {
 public:
  template <class Answer>
  requires(std::same_as<Answer, Yes> || std::same_as<Answer, Error> ||
           (std::same_as<Answer, No> || ...))
      // NOLINTNEXTLINE(google-explicit-constructor): `return refused;` reads like `return value;`
      Outcome(Answer answer)
      : answer_(std::in_place_type<Answer>, std::move(answer)) {}

  // Is it what was asked for?
  explicit operator bool() const noexcept { return std::holds_alternative<Yes>(answer_); }

  // REQUIRES: it is what was asked for. Anything else ends the program: a caller that does not look
  // would go on without the lease.
  Yes& operator*() & { return yes(answer_); }
  const Yes& operator*() const& { return yes(answer_); }
  Yes&& operator*() && { return std::move(yes(answer_)); }
  Yes* operator->() { return &yes(answer_); }
  const Yes* operator->() const { return &yes(answer_); }

  // The refusal of that kind; nullptr: it is none.
  template <class Answer>
  const Answer* get_if() const noexcept {
    return std::get_if<Answer>(&answer_);
  }
  // The fault; nullptr: there was none. A refusal is none.
  const Error* error() const noexcept { return std::get_if<Error>(&answer_); }

  // For std::visit.
  const std::variant<Yes, No..., Error>& answer() const noexcept { return answer_; }

 private:
  template <class Variant>
  static auto& yes(Variant& answer) {
    auto* found = std::get_if<Yes>(&answer);
    if (found == nullptr) std::abort();
    return *found;
  }

  std::variant<Yes, No..., Error> answer_;
};

}  // namespace stint
