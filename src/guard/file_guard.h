// The guard of a file: a write lands only while no higher token has sealed the file, and check and
// write are one atomic step. G5
//
// Lock-free: the body is staged beside the file under a name that tells its token; a seal raises
// the fence and then removes what lower tokens have staged; the write is a rename, which fails when
// its stage is gone. So a writer that was frozen anywhere is refused by the kernel, and nobody ever
// waits for it. docs/internals/guards.md has the recipe, guides/guard-files.md the use.
#pragma once

#include <string>
#include <string_view>

#include "guard/guard.h"

namespace stint::guard {

// "file:/srv/www/index.html": how the target is called, with links resolved as a seal does.
Result<std::string> file_target(const std::string& path);

Result<SealAnswer> seal_file(const std::string& path, const SealRequest& request,
                             api::Fences* fences);

struct FileWrite {
  std::string path;
  std::string_view body = {};
  int body_from = -1;  // a descriptor to read the body from instead, to its end
  // sha256 (hexadecimal) of what must stand there now; "none": there must be no file. Zero against
  // other tokens (the seal stands between them), narrow against a second process with this one.
  std::string if_match = {};
  bool follow = false;       // symbolic links that lead out of their directory too
  bool want_digest = false;  // mode once has it always
  bool network = false;      // as if on a network mount: for tests
};

// `fences` may be null where a fence of this token stands: only a token above the fence, and
// --require-live, need the store. Code::UnknownOutcome: it is in place, and may not survive a power
// cut; or, on a network mount, it may be in place.
Result<WriteAnswer> write_file(const FileWrite& write, const Pass& pass, api::Fences* fences);

}  // namespace stint::guard
