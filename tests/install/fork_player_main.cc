// fork_player STORE: holds a lease, forks, and the child returns from main. Beside the modules that
// the library loads.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "stint/guard.h"
#include "stint/stint.h"

namespace {

template <class Answer>
void tell(const char* verb, const Answer& answer) {
  std::printf("child %s: %s\n", verb,
              answer.error() == nullptr ? "an answer" : answer.error()->message.c_str());
}

int child(const stint::Client& client, stint::Holder& holder, const char* store) {
  std::printf("child holding: %d\n", holder.holding() ? 1 : 0);
  std::printf("child lost: %s\n", holder.lost() ? holder.lost()->trouble.c_str() : "no");
  std::printf("child late: %d\n", holder.deadline() < stint::BootClock::now() ? 1 : 0);
  tell("check", holder.check());
  tell("progress", holder.progress("half"));
  tell("release", holder.release());
  tell("reacquire", holder.reacquire());
  tell("get", client.get("r"));
  tell("list", client.list());
  tell("revoke", client.revoke({.resource = "r", .expected = 1, .why = "test"}));
  tell("acquire", stint::Holder::acquire(client, {.resource = "s"}));
  tell("seal", stint::guard::seal(holder, "admit:x"));
  tell("admit", stint::guard::admit(holder, {.name = "x", .key = "k"}, [] { return 0; }));
  tell("write", stint::guard::write(holder, {.path = "/tmp/none", .body = ""}));
  const auto own = stint::Client::open({.store = store});
  if (own.error() != nullptr) {
    std::printf("child of its own: %s\n", own.error()->message.c_str());
    return 0;
  }
  const auto taken = stint::Holder::acquire(*own, {.resource = "r"});
  std::printf("child of its own: %s\n", taken.template get_if<stint::Refused>() ? "refused" : "?");
  return 0;
}

}  // namespace

int main(int /*argc*/, char** argv) {
  auto opened = stint::Client::open({.store = argv[1]});
  if (!opened) return std::puts(opened.error()->message.c_str()), 1;
  const stint::Client client = *opened;
  auto acquired =
      stint::Holder::acquire(client, {.resource = "r", .ttl = std::chrono::seconds(60)});
  if (!acquired) return std::puts("not acquired"), 1;
  stint::Holder holder = std::move(*acquired);
  std::fflush(stdout);
  const pid_t pid = ::fork();
  if (pid == 0) return child(client, holder, argv[1]);
  int status = -1;
  ::waitpid(pid, &status, 0);
  std::printf("child ended: %d\n", status);
  const auto checked = holder.check();
  std::printf("parent check: %d\n", checked ? 1 : 0);
  std::printf("parent holding: %d\n", holder.holding() ? 1 : 0);
  const auto seen = client.get("r");
  std::printf("parent sees: %d %d\n", seen ? seen->held : -1, seen ? int(seen->token) : -1);
  std::printf("parent release: %d\n", holder.release() ? 1 : 0);
  return 0;
}
