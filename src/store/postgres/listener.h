// Wake-ups: one connection that listens, one thread that hands on what it hears.
//
// A waiter leaves a mark (a row of the table `waiter`: key and the listening process). Who changes
// a marked record says so after its commit. A commit looks for marks when it holds all its locks,
// at a moment before it becomes visible: so one that was under way when the mark was made may have
// missed it. Such a commit has a lower transaction number than one that is drawn after the mark;
// until none of those is left the watch wakes again and again, every second at the latest. The same
// holds after a notification: an appended record can be seen only when no older transaction is
// left.
//
// When the connection is lost, and when it is back, all watches wake. Through a pooler nothing can
// be heard: then all watches wake once a second.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/watch.h"
#include "os/fd.h"
#include "store/postgres/client.h"

namespace stint::store::postgres {

// Shared by the listener and the watches: a watch may outlive its store.
struct Watches {
  struct Registered {
    std::string key;
    os::EventFd event;
  };
  Mutex mutex;
  std::multimap<std::string, Registered*, std::less<>> all GUARDED_BY(mutex);
  std::set<std::string> left GUARDED_BY(mutex);  // keys whose last watch has gone

  void wake(std::string_view key);
  void wake_all();
  bool watched(const std::string& key);
  bool any();
  std::set<std::string> keys();
};

class Listener {
 public:
  // Polls if it may not listen.
  Listener(const Settings& settings, const Clock& clock, bool may_listen);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  Result<std::unique_ptr<Watch>> watch(std::string_view key);

 private:
  struct Request {
    std::string key;
    bool done = false;
    std::optional<Error> error;
  };

  void run();
  void serve_requests();
  void answer(Request& request, Status status);
  Status connect();
  Status mark(const std::string& key);
  bool hear();
  void drop_left();
  void look_at_pending();
  void lose();
  void leave();
  MonoTime next_look() const;
  Result<std::pair<std::int64_t, std::int64_t>> ask_numbers(bool draw);

  // Constant after construction.
  const Settings& settings_;
  const Clock& clock_;
  const bool may_listen_;
  const Connection::Plan plan_;
  const Statement mark_;
  const Statement unmark_;
  const Statement unmark_all_;
  const std::shared_ptr<Watches> watches_;  // shared: see Watches

  // Only of the thread.
  std::unique_ptr<Connection> conn_;
  std::set<std::string> marked_;
  std::map<std::string, std::int64_t> pending_;  // key: until no transaction below this is left
  Millis pace_{0};                               // between two looks
  MonoTime looked_{};

  Mutex mutex_;
  std::condition_variable_any answered_;
  std::deque<Request*> requests_ GUARDED_BY(mutex_);
  bool started_ GUARDED_BY(mutex_) = false;
  bool stopping_ GUARDED_BY(mutex_) = false;
  os::EventFd control_;
  std::thread thread_;  // joined by the destructor
};

}  // namespace stint::store::postgres
