// The guard of a directory: a whole tree takes the place of another in one step, and only while no
// higher token has sealed it. G5
//
// The same fences and the same order of steps as the guard of a file (guard/file_guard.h); what is
// staged is a tree. It changes places with the present one (renameat2 EXCHANGE), so that whoever
// opens a path finds the whole old or the whole new tree, never a mixture and never nothing. A seal
// takes a lower token's tree out of reach by one rename before it removes it file by file.
#pragma once

#include <string>

#include "guard/guard.h"

namespace stint::guard {

// "dir:/srv/www/site": how the target is called, with links resolved as a seal does.
Result<std::string> directory_target(const std::string& path);

Result<SealAnswer> seal_directory(const std::string& path, const SealRequest& request,
                                  api::Fences* fences);

struct Publication {
  std::string path;    // of the directory that is replaced, or made
  std::string staged;  // the new tree; it is copied, from any file system, and left as it is
  bool follow = false;
  bool network = false;  // as if on a network mount: for tests
};

// The digest of the answer is that of the tree (names, modes, contents), in mode once. Errors:
// Code::Unavailable also where the file system cannot exchange two directories.
Result<WriteAnswer> publish_directory(const Publication& publication, const Pass& pass,
                                      api::Fences* fences);

}  // namespace stint::guard
