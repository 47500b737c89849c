#include "store/log/segment.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "os/block_file.h"
#include "store/append_key.h"
#include "store/row_bytes.h"

namespace stint::store::log {
namespace {

constexpr std::string_view kSegmentPrefix = "log.";
constexpr std::string_view kSegmentFormat = "stint log segment 1\n";
constexpr const char* kSpare = "spare";

std::string segment_head(std::uint64_t number, std::uint64_t size) {
  std::string out(kSegmentFormat);
  pack_number(out, number);
  pack_number(out, size);
  const std::uint64_t check = checksum(out);
  pack_number(out, check);
  return out;
}

// Its size; 0: it is not that segment's.
std::uint64_t size_in_head(std::string_view head, std::uint64_t number) {
  if (!head.starts_with(kSegmentFormat)) return 0;
  RowReader reader(head.substr(kSegmentFormat.size()));
  const std::uint64_t found = reader.number();
  const std::uint64_t size = reader.number();
  if (!reader.ok() || found != number) return 0;
  return head.starts_with(segment_head(number, size)) ? size : 0;
}

// Makes the old segment the spare one. Not if it is of another size, because that option was
// changed: the new head must not promise what the file is not.
int reuse(const os::Directory& root, const SegmentPlan& plan, bool& reused) {
  if (plan.old == 0) return 0;
  os::FileFacts facts;
  if (const int e = root.facts(segment_name(plan.old), facts)) return e;
  if (facts.size != plan.size) return root.remove(segment_name(plan.old));
  reused = true;
  return root.rename(segment_name(plan.old), kSpare);
}

int fill_spare(const os::Directory& root, const SegmentPlan& plan, os::Fd& file) {
  bool reused = false;
  if (const int e = reuse(root, plan, reused)) return e;
  if (reused) return root.open_file(kSpare, 0600, file);
  if (const int e = root.remove(kSpare); e != 0 && e != ENOENT) return e;
  if (const int e = root.create(kSpare, 0600, file)) return e;
  return os::fill_with_zeros(file.get(), plan.size);
}

}  // namespace

Error store_file_error(std::string_view doing, const std::string& path, int number) {
  return os::file_error(cat(doing, " the store ", quoted(path)), number);
}

Error damaged_error(const std::string& path, std::string_view what) {
  return unavailable(cat("the store ", quoted(path), " is damaged: ", what,
                         ". Nothing was changed. Restore it from a backup, and see "
                         "docs/guides/restore.md"));
}

std::string segment_name(std::uint64_t number) { return append_key(kSegmentPrefix, number); }

std::uint64_t segment_number(std::string_view name) { return append_number(kSegmentPrefix, name); }

Result<std::vector<std::uint64_t>> list_segments(const os::Directory& root,
                                                 const std::string& path) {
  std::vector<std::string> names;
  if (const int e = root.list(names)) return store_file_error("listing", path, e);
  std::vector<std::uint64_t> out;
  for (const std::string& name : names) {
    if (const std::uint64_t number = segment_number(name)) out.push_back(number);
  }
  std::ranges::sort(out);
  return out;
}

// Named when it is whole, and before anything is written into it.
Result<Segment> make_segment(const os::Directory& root, const std::string& path,
                             const SegmentPlan& plan) {
  Segment out{.number = plan.number, .size = plan.size, .file = {}};
  int e = fill_spare(root, plan, out.file);
  if (e == 0) e = os::write_at(out.file.get(), 0, segment_head(plan.number, plan.size));
  if (e == 0) e = os::sync_file(out.file.get());
  if (e == 0) e = root.rename(kSpare, segment_name(plan.number));
  if (e == 0) e = root.sync();
  if (e == 0) return out;
  root.remove(kSpare);  // a full disk needs the space
  return store_file_error("making room in", path, e);
}

void expect_segment(const os::Directory& root, std::uint64_t number) {
  os::Fd file;
  if (root.open_existing(segment_name(number), file) == 0) os::will_read(file.get(), 0, 0);
}

Result<Segment> open_segment(const os::Directory& root, const std::string& path,
                             std::uint64_t number, std::string& bytes) {
  Segment out{.number = number, .size = 0, .file = {}};
  const std::string name = segment_name(number);
  // Not open_file(): a segment that is missing is not to be made.
  os::FileFacts facts;
  int e = root.facts(name, facts);
  if (e == ENOENT) return damaged_error(path, cat("its ", name, " is missing"));
  if (e == 0) e = root.open_file(name, 0600, out.file);
  if (e == 0) e = os::read_at(out.file.get(), 0, facts.size, bytes);
  if (e != 0) return store_file_error("reading", path, e);
  out.size = size_in_head(bytes, number);
  if (out.size == 0) return damaged_error(path, cat("its ", name, " has no proper head"));
  if (out.size != bytes.size()) {
    return damaged_error(path,
                         cat("its ", name, " has ", bytes.size(), " bytes instead of ", out.size));
  }
  return out;
}

}  // namespace stint::store::log
