// How a process of ours begins: before it opens anything, and before it starts anything.
#pragma once

namespace stint::os {

// Descriptors 0, 1 and 2 are there afterwards. One that was closed would be given to the next file
// that is opened: a store's, and then a message would be written into the store. The stand-in
// cannot be used: /dev/null, 0 for writing, 1 and 2 for reading. One system call where all are
// there.                                                                                        G11
void make_standard_descriptors();

// The first thing that a program of ours does. A parent may have left it SIGCHLD ignored, and then
// the kernel tells nobody how our children ended.
void begin_program();
// Whether begin_program() was called: nobody but us waits for our children. Not so in a library.
bool children_are_ours();

}  // namespace stint::os
