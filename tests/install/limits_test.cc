// stint::Holder in a program that is out of descriptors: an error or a stop, never an abort.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <vector>

#include "base/text.h"
#include "os/fd.h"
#include "stint/stint.h"
#include "tests/support/process.h"

namespace stint::test {
namespace {

using namespace std::chrono_literals;

// What happens in a process of its own. The exit code, or minus the signal that ended it.
int in_a_process(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void limit_descriptors(int count) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = static_cast<rlim_t>(count);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

class FewDescriptors : public testing::Test {
 protected:
  FewDescriptors() {
    ::setenv("XDG_STATE_HOME", dir_.file("state").c_str(), 1);
    ::setenv("XDG_CONFIG_HOME", dir_.file("config").c_str(), 1);
  }
  const TempDir dir_;
  const std::string url_ = cat("sqlite:", dir_.file("stint.db"));
};

constexpr int kHeld = 0;
constexpr int kError = 1;
constexpr int kSilent = 2;  // an error without words

int hold(const std::string& url) {
  const auto client = Client::open({.store = url});
  if (!client) return client.error()->message.empty() ? kSilent : kError;
  auto holder = Holder::acquire(*client, {.resource = "r", .ttl = 30s});
  if (!holder) {
    return holder.error() == nullptr || holder.error()->message.empty() ? kSilent : kError;
  }
  return holder->release() ? kHeld : kSilent;
}

TEST_F(FewDescriptors, AreAnErrorWithWordsAndNothingStaysHeld) {
  int errors = 0;
  int held = 0;
  for (int n = 3; n < 64 && held < 3; ++n) {
    const int code = in_a_process([&] {
      limit_descriptors(n);
      return hold(url_);
    });
    EXPECT_TRUE(code == kHeld || code == kError) << code << " with " << n;
    held += code == kHeld ? 1 : 0;
    errors += code == kError ? 1 : 0;
  }
  EXPECT_EQ(held, 3);
  EXPECT_GT(errors, 3);
  const auto client = Client::open({.store = url_});
  ASSERT_TRUE(client);
  EXPECT_TRUE(Holder::acquire(*client, {.resource = "r"})) << "something stayed held";
}

// The program uses them all up while it holds: the lease is kept, or the stop comes in time.
TEST_F(FewDescriptors, UsedUpWhileItHoldsTheLeaseIsKeptOrTheWorkIsStopped) {
  const int code = in_a_process([&] {
    const auto client = Client::open({.store = url_});
    if (!client) return 10;
    auto holder = Holder::acquire(*client, {.resource = "r", .ttl = 1500ms});
    if (!holder) return 11;
    limit_descriptors(64);
    std::vector<os::Fd> all;
    for (int fd = 0; (fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) all.emplace_back(fd);
    const MonoTime begun = now();
    bool honest = true;
    wait_until([&] {
      const bool ours = BootClock::now() < holder->deadline();
      honest = honest && (ours || !holder->holding());
      return now() - begun > 3500ms;
    });
    if (!holder->holding() && !holder->stop_token().stop_requested()) return 12;
    all.clear();
    return honest ? 0 : 13;
  });
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace stint::test
