// The files of a log: store's directory.
//
//   lock          whose store it is: locked as long as its process lives; its pid, for people
//   snapshot      all records at some moment; replaced whole. A store is there when this is
//   log.<number>  segments of the log, of one size, written full of zeros before they get a name
//   spare, snapshot.new  segments and snapshots on their way to a name; worth nothing
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "os/directory.h"
#include "os/fd.h"

namespace stint::store::log {

constexpr std::size_t kSegmentHead = 4096;

struct Segment {
  std::uint64_t number = 0;
  std::uint64_t size = 0;
  os::Fd file;
};

std::string segment_name(std::uint64_t number);
// 0: the name is no segment's.
std::uint64_t segment_number(std::string_view name);
// In order.
Result<std::vector<std::uint64_t>> list_segments(const os::Directory& root,
                                                 const std::string& path);

// An empty one, ready and named for good. `old`: a segment that is not needed any more and becomes
// it; 0: none. What an old one holds has lower numbers than all that is to come.
struct SegmentPlan {
  std::uint64_t number = 0;
  std::uint64_t size = 0;
  std::uint64_t old = 0;
};
Result<Segment> make_segment(const os::Directory& root, const std::string& path,
                             const SegmentPlan& plan);

// With all of its bytes. Code::Unavailable: damaged.
Result<Segment> open_segment(const os::Directory& root, const std::string& path,
                             std::uint64_t number, std::string& bytes);

// A hint: it will be opened soon.
void expect_segment(const os::Directory& root, std::uint64_t number);

Error store_file_error(std::string_view doing, const std::string& path, int number);
Error damaged_error(const std::string& path, std::string_view what);

}  // namespace stint::store::log
