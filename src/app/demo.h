// `stint serve --demo`: runs that come and go on the demo's own store, so that there is something
// to look at. They are played, not run: no process is started; every verb is a real one.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "api/events.h"
#include "api/leases.h"
#include "app/demo_work.h"
#include "base/random.h"

namespace stint::app {

class Demo {
 public:
  // All outlive it.
  struct Stage {
    api::Leases& leases;
    api::Events& events;
    api::Slots& slots;
    api::Queue& queue;
  };
  Demo(const Stage& stage, const Clock& clock);
  ~Demo();
  Demo(const Demo&) = delete;
  Demo& operator=(const Demo&) = delete;

 private:
  struct Player;
  void play();
  void step(Player& player);
  void take(Player& player);
  void work(Player& player);
  void end(Player& player);
  void write_late(const Player& player);
  void write_foreign(const Player& player);

  const Stage stage_;
  api::Leases& leases_;
  api::Events& events_;
  const Clock& clock_;
  SeededRandom random_;
  std::vector<std::unique_ptr<Player>> players_;
  std::atomic<bool> over_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace stint::app
