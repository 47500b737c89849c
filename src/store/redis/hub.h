// Wake-ups by publish and subscribe: one connection and one thread for all watches of a store, made
// with the first of them.
//
// A waiter that nobody wakes costs no traffic. After a lost connection everybody is woken: what was
// published meanwhile was published to nobody.
//
// Thread safety: every method may be called from any thread.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/watch.h"
#include "os/fd.h"
#include "store/redis/link.h"

namespace stint::store::redis {

class Hub {
 public:
  explicit Hub(Options options);
  ~Hub();  // joins the thread; watches may live on, asleep
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  // Returns when the server has confirmed the subscription.
  Result<std::unique_ptr<Watch>> watch(std::string_view key);

 private:
  class WakeUp;
  struct Channel {
    std::set<os::EventFd*> watchers;
    bool asked = false;   // SUBSCRIBE was sent and no UNSUBSCRIBE after it
    int unconfirmed = 0;  // SUBSCRIBEs without their confirmation
    bool confirmed() const { return asked && unconfirmed == 0; }
  };
  // Shared with the watches: a watch may outlive the store.
  struct Board {
    Mutex mutex;
    std::condition_variable_any changed;
    std::map<std::string, Channel, std::less<>> channels GUARDED_BY(mutex);  // by channel
    std::optional<Error> trouble GUARDED_BY(mutex);  // why there is no connection
    os::EventFd work;                                // something to subscribe to or from

    void leave(const std::string& channel, os::EventFd* event);
    void wake(const std::string& channel);
    void lost(const Error& why);
    void confirm(const std::string& channel);
    // What has to be sent, and notes it as sent.
    std::string due();
  };

  void run(const std::stop_token& stop);
  void listen(Link& link, const std::stop_token& stop);
  // False: this connection is of no use any more.
  bool take_message(Link& link);
  bool send_due(Link& link);

  const Options options_;
  std::shared_ptr<Board> board_;
  Mutex start_mutex_;
  std::stop_source stop_;
  std::thread thread_ GUARDED_BY(start_mutex_);
};

}  // namespace stint::store::redis
