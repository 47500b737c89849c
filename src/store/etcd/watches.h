// Wake-ups from etcd: one stream for all watches of a store.
//
// A watch notes the newest revision that the store has seen. The first stream that it is part of
// begins with the present: who asks etcd for something earlier is served by a loop that turns ten
// times a second, and so would be what comes after. If the store has moved on since the watch was
// made, its owner is woken to look. A later stream begins where the one before ended: etcd keeps
// its history, so that nothing is missed while a stream is down. When history is gone (compaction),
// or the stream had to be opened anew after a failure, everybody is woken.
//
// Thread safety: every method may be called from any thread.
#pragma once

#include <array>
#include <condition_variable>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "base/mutex.h"
#include "base/watch.h"
#include "net/http_client.h"
#include "os/fd.h"
#include "store/etcd/gateway.h"
#include "store/etcd/keys.h"

namespace stint::store::etcd {

class Watches {
 public:
  Watches(const Keys& keys, Gateway& gateway, net::HttpClient& http, const Clock& clock,
          Millis timeout);
  ~Watches();
  Watches(const Watches&) = delete;
  Watches& operator=(const Watches&) = delete;

  // Wakes for what is written under the key after `revision`.
  Result<std::unique_ptr<Watch>> watch(std::string_view key, std::uint64_t revision);

 private:
  // A key is watched in three places: as a record, as a prefix that is appended to, and the end of
  // its timer.
  static constexpr std::size_t kPlaces = 3;
  using Revisions = std::array<std::uint64_t, kPlaces>;
  struct Registered {
    std::string key;
    Revisions seen{};   // delivered up to here
    bool fresh = true;  // no stream has begun to deliver yet
    os::EventFd event;
  };
  // Shared with the watches: one may outlive the store.
  struct Shared;
  class WakeUp;
  struct Round;

  void loop();
  void listen(const std::string& body, Round& round);
  bool take(std::string_view piece, Round& round);
  bool take_line(std::string_view line, Round& round);
  void take_event(const KeyValue& changed);
  void take_beginning(const std::string& key, std::size_t place, std::uint64_t revision);
  void start_over(std::uint64_t seen, bool went_back);
  // Begins a round: its stream, and what that is to be asked. Empty: nothing to watch.
  std::string begin(Round& round);
  void pause();

  const Keys& keys_;
  Gateway& gateway_;
  net::HttpClient& http_;
  const Clock& clock_;
  const Millis timeout_;
  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace stint::store::etcd
