// Memory for who makes and frees the small pieces of many requests at a time.
//
// The C library keeps only seven freed pieces of a size at hand for each thread, and hears of any
// other number only at a program's start, from its environment. With as many as a batch of requests
// needs, a server answers a sixth more of them.
#pragma once

namespace stint::os {

// Starts this very program once more, in this process, with more pieces at hand. Comes back if that
// is so already, if somebody has set the C library's tunables, or if it cannot be done. Call it
// before anything is opened or started.
void restart_with_more_pieces();

}  // namespace stint::os
