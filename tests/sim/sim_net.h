// HTTP in the simulation: what stands between a client, the proxies and the application behind
// them. net::http::Server and net::make_http_client are linked from here; the proxy itself, its
// gate, its answers and the seal through it are the program's own.
//
// A request on its way is nobody's memory: it arrives though its sender was killed or frozen.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "net/http/server.h"
#include "os/fd.h"
#include "tests/sim/sim_plan.h"
#include "tests/support/sim.h"

namespace stint::test {

class SimServer;

// One request and its answer, between a client and a server.
struct SimExchange {
  net::http::RequestHead head;
  std::string body;
  bool over = false;    // answered, or the connection was closed
  bool closed = false;  // without an answer
  int status = 0;
  std::string answer;
  os::EventFd news;        // for the client
  os::EventFd over_event;  // for a server that stops
  void end(int with, std::string text);
  void close();
};

// One request that was let through, between a proxy and the application.
struct SimPassage {
  net::http::RequestHead head;
  std::string body;
  bool let_go = false;  // the proxy waits no more
  bool answered = false;
  int status = 0;
  std::string answer;
  os::EventFd to_application;
  os::EventFd to_proxy;
};

class SimNet {
 public:
  // How long the application works on one request at the most. The proxy's drain time is longer.
  static constexpr Millis kLongestWork{28'000};
  static constexpr Millis kDrain{30'000};

  // `nowhere`: the machine that the application is on; nothing ever happens to it.
  SimNet(Scheduler& scheduler, SimTally& tally, SimHost& nowhere);
  ~SimNet();
  SimNet(const SimNet&) = delete;
  SimNet& operator=(const SimNet&) = delete;
  static SimNet& present();

  // Chances in a thousand, for each message.
  struct Troubles {
    unsigned lose = 25;   // a connection breaks; half of them before anything was sent
    unsigned slow = 60;   // a message takes up to five seconds
    unsigned work = 200;  // the application takes its time
    unsigned stop = 10;   // the proxy is stopped right before it sends a request on
  };
  void set_troubles(Troubles troubles) { troubles_ = troubles; }

  // The application: a text for each path. Called at the moment at which it is written.
  using Look = std::function<void(const net::http::RequestHead&, const std::string& body)>;
  void on_write(Look look) { look_ = std::move(look); }
  const std::string* text_at(const std::string& path) const;

  // ---- for what stands in for the network
  void listen(SimServer& server) { servers_.push_back(&server); }
  void leave(SimServer& server) { std::erase(servers_, &server); }
  // As a load balancer does: the same one as long as it admits. Null: nobody listens.
  SimServer* front();
  void turn_away() { ++turn_; }
  std::shared_ptr<SimPassage> pass(const net::http::RequestHead& head, const std::string& body);
  void travel();
  bool loses(const char* what);
  // SIGSTOP, for up to a minute and a half, of whoever asks.
  void may_stop();

 private:
  bool chance(unsigned per_thousand, const char* fault);
  void carry_out(SimPassage& passage);

  Scheduler& scheduler_;
  SimTally& tally_;
  SimHost& nowhere_;
  Troubles troubles_;
  Look look_;
  std::map<std::string, std::string> texts_;
  std::vector<SimServer*> servers_;
  std::uint64_t turn_ = 0;
};

}  // namespace stint::test
