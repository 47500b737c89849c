#include "tests/sim/sim_disk.h"

#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/text.h"
#include "os/artifact.h"
#include "os/directory.h"
#include "os/filesystem.h"
#include "tests/sim/sim_os.h"

namespace stint::test {
namespace {

SimDisk* present_disk = nullptr;
constexpr std::uint64_t kLongestCallNanos = 300'000;
constexpr std::uint64_t kLongestStallNanos = 60'000'000'000;

}  // namespace

SimDisk::SimDisk(Scheduler& scheduler, SimTally& tally) : scheduler_(scheduler), tally_(tally) {
  CHECK(present_disk == nullptr, "one disk at a time");
  present_disk = this;
}
SimDisk::~SimDisk() { present_disk = nullptr; }

SimDisk& SimDisk::present() {
  CHECK(present_disk != nullptr, "outside of a simulation");
  return *present_disk;
}

bool SimDisk::chance(unsigned per_thousand, const char* fault) {
  if (per_thousand == 0 || scheduler_.random().below(1000) >= per_thousand) return false;
  tally_.fault(fault);
  scheduler_.note(cat("disk ", fault));
  return true;
}

int SimDisk::call(bool writes) {
  ++calls_;
  const bool stalls = chance(troubles_.stall, "disk_stall");
  const std::uint64_t longest = stalls ? kLongestStallNanos : kLongestCallNanos;
  scheduler_.interleave(Nanos(1 + scheduler_.random().below(longest)));
  if (!scheduler_.alive()) return EIO;
  if (writes && chance(troubles_.enospc, "ENOSPC")) return ENOSPC;
  return chance(troubles_.eio, "EIO") ? EIO : 0;
}

void SimDisk::change(Change change) {
  for (const auto& [name, file] : change) {
    if (file) {
      names_[name] = file;
    } else {
      names_.erase(name);
    }
  }
  pending_.push_back(std::move(change));
}

void SimDisk::power_cut() {
  // A journal keeps the order: some of it is on the disk, the rest is not.
  const std::size_t kept = scheduler_.random().below(pending_.size() + 1);
  for (std::size_t i = 0; i < kept; ++i) {
    for (const auto& [name, file] : pending_[i]) {
      if (file) {
        durable_[name] = file;
      } else {
        durable_.erase(name);
      }
    }
  }
  pending_.clear();
  names_ = durable_;
  for (auto& [name, file] : names_) {
    if (file->content == file->durable) continue;
    const bool longer = file->content.starts_with(file->durable);
    const std::size_t from = longer ? file->durable.size() : 0;
    const std::size_t torn = from + scheduler_.random().below(file->content.size() - from + 1);
    file->content.resize(torn);
    file->durable = file->content;
    tally_.fault("torn");
  }
  if (look_) look_("", "");
}

std::optional<std::string> SimDisk::peek(const std::string& name) const {
  const auto found = names_.find(name);
  if (found == names_.end()) return std::nullopt;
  return found->second->content;
}

std::vector<std::string> SimDisk::names() const {
  std::vector<std::string> out;
  for (const auto& [name, file] : names_) out.push_back(name);
  return out;
}

std::string SimDisk::prepare(std::string content) {
  const std::string path = cat("/staged/", ++last_staged_);
  staged_[path] = std::move(content);
  return path;
}

const std::string* SimDisk::prepared(const std::string& path) const {
  const auto found = staged_.find(path);
  return found == staged_.end() ? nullptr : &found->second;
}

int SimDisk::create(const std::string& name, int& fd, bool tree) {
  if (const int failed = call(true)) return failed;
  if (names_.contains(name)) return EEXIST;
  auto file = std::make_shared<Inode>();
  file->number = ++last_inode_;
  file->tree = tree;
  change({{name, file}});
  fd = SimOs::present().open_event();
  open_[fd] = file;
  return 0;
}

int SimDisk::open(const std::string& name, int& fd) {
  if (const int failed = call(false)) return failed;
  const auto found = names_.find(name);
  if (found == names_.end()) return ENOENT;
  fd = SimOs::present().open_event();
  open_[fd] = found->second;
  return 0;
}

void SimDisk::close(int fd) {
  const auto found = open_.find(fd);
  if (found == open_.end()) return;
  if (found->second->locked_by == fd) found->second->locked_by = -1;
  open_.erase(found);
}

int SimDisk::try_lock(int fd) {
  if (const int failed = call(false)) return failed;
  const auto found = open_.find(fd);
  if (found == open_.end()) return EBADF;
  int& by = found->second->locked_by;
  if (by >= 0 && by != fd) return EWOULDBLOCK;
  by = fd;
  return 0;
}

int SimDisk::write(int fd, std::string_view content) {
  const int failed = call(true);
  const auto found = open_.find(fd);
  if (found == open_.end()) return EBADF;
  // A full disk takes what fits.
  if (failed == ENOSPC) content = content.substr(0, scheduler_.random().below(content.size() + 1));
  if (failed != EIO) found->second->content += content;
  return failed;
}

int SimDisk::read(int fd, std::string& content) {
  if (const int failed = call(false)) return failed;
  const auto found = open_.find(fd);
  if (found == open_.end()) return EBADF;
  content = found->second->content;
  return 0;
}

int SimDisk::read(const std::string& name, std::string& content, std::uint64_t& inode) {
  if (const int failed = call(false)) return failed;
  const auto found = names_.find(name);
  if (found == names_.end()) return ENOENT;
  content = found->second->content;
  inode = found->second->number;
  return 0;
}

int SimDisk::sync(int fd) {
  if (const int failed = call(false)) return failed;
  const auto found = open_.find(fd);
  if (found == open_.end()) return EBADF;
  if (!lies_) found->second->durable = found->second->content;
  return 0;
}

int SimDisk::sync_names() {
  if (const int failed = call(false)) return failed;
  if (lies_) return 0;
  durable_ = names_;
  pending_.clear();
  return 0;
}

int SimDisk::rename(const std::string& from, const std::string& to, bool replace) {
  const int failed = call(true);
  if (failed == ENOSPC || !scheduler_.alive()) return failed;
  const auto found = names_.find(from);
  if (found == names_.end()) return ENOENT;
  if (!replace && names_.contains(to)) return EEXIST;
  return named(failed, {{to, found->second}, {from, nullptr}}, from, to);
}

int SimDisk::exchange(const std::string& one, const std::string& other) {
  const int failed = call(true);
  if (failed == ENOSPC || !scheduler_.alive()) return failed;
  const auto first = names_.find(one);
  const auto second = names_.find(other);
  if (first == names_.end() || second == names_.end()) return ENOENT;
  return named(failed, {{other, first->second}, {one, second->second}}, one, other);
}

int SimDisk::named(int failed, Change names, const std::string& from, const std::string& to) {
  if (failed != 0 && scheduler_.random().below(2) == 0) return failed;
  change(std::move(names));
  if (look_) look_(from, to);
  if (!betrayed_.empty() && to.find(betrayed_) != to.npos) {
    betrayed_.clear();
    return EIO;
  }
  return failed;
}

int SimDisk::remove(const std::string& name) {
  if (const int failed = call(false)) return failed;
  const auto found = names_.find(name);
  if (found == names_.end()) return ENOENT;
  if (found->second->tree) return EISDIR;
  change({{name, nullptr}});
  if (look_) look_(name, "");
  return 0;
}

// What is in it first, wherever its name has gone meanwhile.
void SimDisk::remove_tree(const std::string& name) {
  const auto found = names_.find(name);
  if (found == names_.end() || !found->second->tree) return;
  const File tree = found->second;
  if (call(false) != 0) return;
  tree->content.resize(tree->content.size() / 2);
  if (call(false) != 0) return;
  tree->content.clear();
  if (call(false) != 0) return;
  const auto still = names_.find(name);
  if (still == names_.end() || still->second != tree) return;
  change({{name, nullptr}});
  if (look_) look_(name, "");
}

int SimDisk::list(std::vector<std::string>& out) {
  if (const int failed = call(false)) return failed;
  out = names();
  return 0;
}

int SimDisk::facts(const std::string& name, Facts& out) {
  if (const int failed = call(false)) return failed;
  const auto found = names_.find(name);
  if (found == names_.end()) return ENOENT;
  out = {found->second->number, found->second->content.size(), found->second->tree};
  return 0;
}

std::uint64_t SimDisk::inode_of(int fd) const {
  const auto found = open_.find(fd);
  return found == open_.end() ? 0 : found->second->number;
}

}  // namespace stint::test

// ---- instead of os/directory.cc, os/artifact.cc and os/filesystem.cc

namespace stint::os {
namespace {

using test::SimDisk;
using test::SimOs;

FileFacts plain_file(std::uint64_t inode, std::uint64_t size) {
  FileFacts out;
  out.device = 1;
  out.inode = inode;
  out.size = size;
  out.mode = 0644;
  out.kind = FileKind::Regular;
  return out;
}

}  // namespace

int Directory::open(const std::string& path, Directory& out) {
  if (path != SimDisk::kDirectory) return ENOENT;
  out.fd_ = Fd(SimOs::present().open_event());
  return 0;
}
int Directory::read(const std::string& name, std::size_t limit, std::string& content,
                    FileFacts& facts) const {
  std::uint64_t inode = 0;
  if (const int failed = SimDisk::present().read(name, content, inode)) return failed;
  facts = plain_file(inode, content.size());
  return content.size() > limit ? EFBIG : 0;
}
int Directory::create(const std::string& name, unsigned /*mode*/, Fd& out) const {
  int fd = -1;
  const int failed = SimDisk::present().create(name, fd);
  if (failed == 0) out = Fd(fd);
  return failed;
}
int Directory::create_masked(const std::string& name, unsigned mode, Fd& out) const {
  return create(name, mode, out);
}
int Directory::open_existing(const std::string& name, Fd& out) const {
  int fd = -1;
  const int failed = SimDisk::present().open(name, fd);
  if (failed == 0) out = Fd(fd);
  return failed;
}
int Directory::open_file(const std::string& name, unsigned mode, Fd& out) const {
  const int failed = open_existing(name, out);
  return failed == ENOENT ? create(name, mode, out) : failed;
}
int Directory::rename(const std::string& name, const std::string& new_name) const {
  return SimDisk::present().rename(name, new_name, true);
}
int Directory::rename_new(const std::string& name, const std::string& new_name) const {
  return SimDisk::present().rename(name, new_name, false);
}
int Directory::facts(const std::string& name, FileFacts& out) const {
  SimDisk::Facts facts;
  if (const int failed = SimDisk::present().facts(name, facts)) return failed;
  out = plain_file(facts.inode, facts.size);
  if (facts.tree) out.kind = FileKind::Directory;
  return 0;
}
int Directory::list(std::vector<std::string>& names, std::vector<std::string>* /*folders*/) const {
  return SimDisk::present().list(names);
}
// Nobody puts another in the place of the one directory that there is.
bool Directory::stands_at(const std::string& /*path*/) const { return true; }
int Directory::exchange(const std::string& name, const std::string& other) const {
  return SimDisk::present().exchange(name, other);
}
int Directory::remove(const std::string& name) const { return SimDisk::present().remove(name); }
int Directory::sync() const { return SimDisk::present().sync_names(); }

// No directories to walk through, links and locks on this disk.
int Directory::make_directory(const std::string& /*name*/, unsigned /*mode*/) const {
  return ENOSYS;
}
int Directory::open_directory(const std::string& /*name*/, Directory& /*out*/) const {
  return ENOSYS;
}
int Directory::link(const std::string& /*name*/, const Directory& /*to*/,
                    const std::string& /*new_name*/) const {
  return ENOSYS;
}
int Directory::read_link(const std::string& /*name*/, std::string& /*out*/) const { return EINVAL; }
int Directory::remove_directory(const std::string& /*name*/) const { return ENOSYS; }

int facts_of(const std::string& path, FileFacts& out) {
  const std::string* tree = SimDisk::present().prepared(path);
  if (tree == nullptr) return ENOENT;
  out = plain_file(0, tree->size());
  out.kind = FileKind::Directory;
  return 0;
}
int facts_of(int fd, FileFacts& out) {
  out = plain_file(SimDisk::present().inode_of(fd), 0);
  return 0;
}
int write_whole(int fd, std::string_view content) { return SimDisk::present().write(fd, content); }
int read_at(int /*fd*/, std::uint64_t /*offset*/, std::size_t /*length*/, std::string& /*out*/) {
  return ENOSYS;
}
int sync_file(int fd) { return SimDisk::present().sync(fd); }
int overwrite(int /*fd*/, std::string_view /*content*/) { return ENOSYS; }
int touch(int /*fd*/) { return ENOSYS; }
int try_lock(int fd) { return SimDisk::present().try_lock(fd); }

Error file_error(std::string_view doing, int number) {
  const Code code = number == EACCES || number == EPERM ? Code::Denied : Code::Unavailable;
  return {code, cat(doing, ": ", std::strerror(number))};
}

int copy_bytes(int /*from*/, int /*to*/, const Onlooker& /*onlooker*/) { return ENOSYS; }
int read_bytes(int from, const Onlooker& onlooker) {
  std::string content;
  if (const int failed = SimDisk::present().read(from, content)) return failed;
  onlooker(content);
  return 0;
}
Status make_alike(int /*fd*/, const std::string& /*path*/, const FileFacts& /*facts*/) {
  return {};
}
void give_owner(int /*fd*/, const FileFacts& /*facts*/) {}
Status copy_tree(const std::string& from, const Directory& /*to*/, const std::string& name,
                 const Onlooker& onlooker, NamePredicate /*skip*/) {
  SimDisk& disk = SimDisk::present();
  const std::string content = *disk.prepared(from);
  if (onlooker) onlooker(content);
  int fd = -1;
  int failed = disk.create(name, fd, true);
  const Fd tree(fd);
  const std::size_t half = content.size() / 2;
  if (failed == 0) failed = disk.write(fd, content.substr(0, half));
  if (failed == 0) failed = disk.write(fd, content.substr(half));
  if (failed == 0) failed = disk.sync(fd);
  if (failed != 0) return file_error(cat("copying ", from), failed);
  return {};
}
// A tree is one text here: it has no folders, and no fences in them.
Status walk_folders(const Directory& /*in*/, const std::string& /*name*/, NamePredicate /*skip*/,
                    const FolderVisitor& /*visit*/) {
  return {};
}
void remove_tree(const Directory& /*in*/, const std::string& name) {
  SimDisk::present().remove_tree(name);
}
std::string real_path(const std::string& path) { return path; }

Result<std::string> filesystem_of(const std::string& /*path*/) { return std::string("ext4"); }

}  // namespace stint::os
