#include "bench/load.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "base/text.h"
#include "os/clock.h"
#include "os/fd.h"

namespace stint::bench {
namespace {

struct Line {
  os::Fd fd;
  std::unique_ptr<Talk> talk;
  std::string in;
  MonoTime asked{};
};

os::Fd dial(std::uint16_t port) {
  os::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0,
        "the server cannot be reached");
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

void say(Line& line, const std::string& text, MonoTime now) {
  line.asked = now;
  CHECK(::send(line.fd.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(text.size()),
        "the request does not fit into the socket");
}

double at(std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  return sorted[std::min(sorted.size() - 1,
                         static_cast<std::size_t>(share * static_cast<double>(sorted.size())))];
}

std::size_t chunks_end(std::string_view in, std::size_t from) {
  while (true) {
    const std::size_t end = in.find("\r\n", from);
    if (end == in.npos) return 0;
    std::size_t size = 0;
    std::from_chars(in.data() + from, in.data() + end, size, 16);
    from = end + 2 + size + 2;
    if (from > in.size()) return 0;
    if (size == 0) return from;
  }
}

}  // namespace

std::size_t whole_http(std::string_view in) {
  const std::size_t head = in.find("\r\n\r\n");
  if (head == in.npos) return 0;
  const std::string_view top = in.substr(0, head);
  constexpr std::string_view kLength = "ontent-Length: ";
  const std::size_t found = top.find(kLength);
  if (found == top.npos) return chunks_end(in, head + 4);
  std::size_t length = 0;
  const char* digits = top.data() + found + kLength.size();
  std::from_chars(digits, top.data() + top.size(), length);
  return in.size() >= head + 4 + length ? head + 4 + length : 0;
}

std::string_view http_body(std::string_view answer) {
  return answer.substr(answer.find("\r\n\r\n") + 4);
}
bool http_ok(std::string_view answer) { return answer.substr(9, 3) == "200"; }

LoadResult run_load(std::uint16_t port, std::size_t connections, Millis time,
                    const std::function<std::unique_ptr<Talk>(std::size_t)>& talk) {
  const os::SystemClock clock;
  const os::Fd poll(::epoll_create1(EPOLL_CLOEXEC));
  std::vector<Line> lines(connections);
  for (std::size_t i = 0; i < connections; ++i) {
    lines[i].fd = dial(port);
    lines[i].talk = talk(i);
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    wanted.data.u64 = i;
    ::epoll_ctl(poll.get(), EPOLL_CTL_ADD, lines[i].fd.get(), &wanted);
  }
  const MonoTime begin = clock.mono();
  const MonoTime end = begin + time;
  for (Line& line : lines) say(line, line.talk->next({}), begin);
  std::vector<double> took;
  std::vector<epoll_event> ready(connections);
  std::vector<char> buffer(1U << 16U);
  std::size_t open = connections;
  while (open > 0) {
    const int count =
        ::epoll_wait(poll.get(), ready.data(), static_cast<int>(ready.size()), 10'000);
    CHECK(count > 0, "the server has stopped answering");
    for (int i = 0; i < count; ++i) {
      Line& line = lines[ready[static_cast<std::size_t>(i)].data.u64];
      const ssize_t got = ::recv(line.fd.get(), buffer.data(), buffer.size(), 0);
      CHECK(got > 0, "the server has closed a connection");
      line.in.append(buffer.data(), static_cast<std::size_t>(got));
      const std::size_t length = line.talk->whole(line.in);
      if (length == 0) continue;
      const MonoTime now = clock.mono();
      took.push_back(std::chrono::duration<double, std::micro>(now - line.asked).count());
      const std::string answer = line.in.substr(0, length);
      line.in.erase(0, length);
      if (now < end || !line.talk->at_rest()) {
        say(line, line.talk->next(answer), now);
      } else {
        ::epoll_ctl(poll.get(), EPOLL_CTL_DEL, line.fd.get(), nullptr);
        --open;
      }
    }
  }
  const double seconds = std::chrono::duration<double>(clock.mono() - begin).count();
  std::sort(took.begin(), took.end());
  return {static_cast<double>(took.size()) / seconds, at(took, 0.5), at(took, 0.99)};
}

}  // namespace stint::bench
