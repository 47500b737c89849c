// The guards against the least that is safe without them: a file is written beside, synced, renamed
// and its directory synced; a fence is a file that is created and synced, and its directory synced.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "base/check.h"
#include "base/text.h"
#include "bench/bench.h"
#include "guard/file_guard.h"
#include "tests/support/issuing_fences.h"
#include "tests/support/process.h"

namespace stint::bench {
namespace {

constexpr int kRounds = 7;
constexpr double kWriteGoal = 1.4;
constexpr double kSealGoal = 1.5;

void write_synced(int directory, const char* name, std::string_view body) {
  const os::Fd file(::openat(directory, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  std::string_view rest = body;
  while (!rest.empty()) {
    const ssize_t wrote = ::write(file.get(), rest.data(), rest.size());
    CHECK(wrote > 0, "write");
    rest.remove_prefix(static_cast<std::size_t>(wrote));
  }
  CHECK(::fsync(file.get()) == 0, "fsync");
}

os::Fd open_directory(const std::string& path) {
  return os::Fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

// As an editor or a careful script does it, each time with its directory opened anew.
void bare_write(const std::string& directory, std::string_view body) {
  const os::Fd here = open_directory(directory);
  write_synced(here.get(), "page.new", body);
  CHECK(::renameat(here.get(), "page.new", here.get(), "page") == 0, "rename");
  CHECK(::fsync(here.get()) == 0, "fsync");
}

void bare_create(const std::string& directory, int number) {
  const os::Fd here = open_directory(directory);
  write_synced(here.get(), cat("fence.", number).c_str(), "token");
  CHECK(::fsync(here.get()) == 0, "fsync");
}

struct World {
  test::TempDir dir;
  test::IssuingFences fences;
  std::uint64_t token = 1;
};

bool writes(const char* size, std::size_t bytes, int each) {
  World world;
  world.fences.issue(1);
  test::write_text(world.dir.file("guarded"), "");
  const std::string body(bytes, 'b');
  const guard::FileWrite write{.path = world.dir.file("guarded"), .body = body};
  const guard::Pass pass = test::pass_with(1);
  const auto ours = [&] {
    const auto answer = guard::write_file(write, pass, &world.fences);
    CHECK(answer && std::holds_alternative<guard::Written>(*answer), "not written");
  };
  ours();
  Took took = take_turns({.ours = ours,
                          .theirs = [&] { bare_write(world.dir.path(), body); },
                          .each = each,
                          .rounds = kRounds},
                         cat("guard: write of ", size), "write+fsync+rename+fsync(dir), us");
  took.wall.goal = Goal::AtMost;
  took.wall.bound = kWriteGoal;
  return print(took.wall);
}

bool seals(int each) {
  World world;
  const std::string path = world.dir.file("guarded");
  test::write_text(path, "content");
  int bare = 0;
  Took took = take_turns(
      {.ours =
           [&] {
             world.fences.issue(++world.token);
             const guard::SealRequest request{
                 .pass = test::pass_with(world.token), .by_order = false, .adopt = std::nullopt};
             const auto answer = guard::seal_file(path, request, &world.fences);
             CHECK(answer && std::holds_alternative<guard::Sealed>(*answer), "not sealed");
           },
       // The one before is removed too, as a seal does: a directory of thousands is no measure.
       .theirs =
           [&] {
             bare_create(world.dir.path(), ++bare);
             ::unlink(world.dir.file(cat("fence.", bare - 1)).c_str());
           },
       .each = each,
       .rounds = kRounds},
      "guard: seal of a file", "create+fsync+fsync(dir), us");
  took.wall.goal = Goal::AtMost;
  took.wall.bound = kSealGoal;
  return print(took.wall);
}

int run() {
  print_header();
  bool met = writes("4 KiB", 4U << 10U, 100);
  met &= writes("4 MiB", 4U << 20U, 20);
  met &= seals(100);
  return met ? 0 : 1;
}

}  // namespace
}  // namespace stint::bench

int main() { return stint::bench::run(); }
