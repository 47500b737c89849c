// Files that are written in place: space that was written once is written again without a change of
// the file's size or extents, so that a sync is the data alone.
//
// Every call answers with an errno (0: done).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace stint::os {

// All of it; ENODATA: the file ends before.
int read_into(int fd, std::uint64_t offset, std::span<char> out);
// A hint: so much will be read soon (0: up to the end). The disk may fetch it meanwhile.
void will_read(int fd, std::uint64_t offset, std::uint64_t length);
int write_at(int fd, std::uint64_t offset, std::string_view bytes);
// Data, and of the file's own facts only what is needed to read it back.
int sync_data(int fd);
// Writes that many zeros from the start, and syncs: fallocate alone leaves space whose first write
// changes the file's extents.
int fill_with_zeros(int fd, std::uint64_t size);

}  // namespace stint::os
