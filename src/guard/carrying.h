// The fences inside a tree, when another tree takes its place: they go along. G5
//
// A fence that comes along says that the file was sealed, and does not open it: between the moment
// that it was seen and the moment that the trees changed places a newer holder may have sealed in
// the old one. So it has a name of its own (`.FILE.carried.TOKEN.GENERATION`), and its own token
// asks the store once more before it makes the fence that admits it. What is lower, or another's,
// is refused by it as by any fence.
//
// Thread safety: any number of processes may carry from the same tree, and into the same one.
#pragma once

#include <string>

#include "base/result.h"
#include "os/directory.h"

namespace stint {
class Random;
}

namespace stint::guard {

// Names within one directory: of the tree that has the fences, and of the one that is to have them.
struct Carriage {
  const os::Directory& beside;
  const std::string& from;
  const std::string& to;
};

// What stands in `to` as high or higher stays as it is. A folder that it lacks is made. A tree that
// is not there has no fences. Code::Invalid: `to` has a file or a link where a fence needs a
// folder.
Status carry_fences(const Carriage& carriage, Random& random);

// From a tree that was taken out of its place, and is to be removed, into the one that stands at
// `to` now, whichever that is in the end. What cannot be handed over is left: then no fence stands
// there, and the store decides.
void hand_over_fences(const Carriage& carriage, Random& random);

}  // namespace stint::guard
