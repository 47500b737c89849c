// From an answer of the verbs to an HTTP status and body. The codes are those of base/error.h.
#pragma once

#include <optional>

#include "api/wire.h"
#include "net/http/server.h"

namespace stint::server {

using net::http::Answer;

int status_of(Code code);
Answer error_answer(int status, const Error& error, std::optional<Millis> retry = std::nullopt);
// A fault of the world or of the caller.
Answer fault_answer(const Error& error);
Answer ok(std::string body);

Answer acquire_answer(const api::AcquireAnswer& answer, const std::optional<Claim>& made,
                      WallTime now);
Answer hold_answer(const api::HoldAnswer& answer, Token offered);
Answer fence_answer(const api::FenceAnswer& answer, const core::Offer& offer);

}  // namespace stint::server
