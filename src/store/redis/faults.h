// From a server's error line to an Error of ours: one clear line, and never a secret in it.
#pragma once

#include <string_view>

#include "base/error.h"
#include "store/redis/resp.h"

namespace stint::store::redis {

// REQUIRES: the reply is an error.
Error fault_of(const Reply& reply, std::string_view where);

// True if this error says that the command was not carried out, not even in part. Of any other
// error after a commit it is not known.
bool surely_not_done(const Reply& reply);

Error damaged(std::string_view what);

}  // namespace stint::store::redis
