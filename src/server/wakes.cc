#include "server/wakes.h"

#include "base/text.h"

namespace stint::server {
namespace {

constexpr Millis kPoll{500};

}  // namespace

struct Wakes::Place {
  std::string topic;
  std::list<std::function<void()>> tasks;
  std::unique_ptr<Watch> watch;
  std::unique_ptr<net::http::Watching> watching;  // before the watch goes
  bool over = false;
};

class Wakes::One final : public Subscription {
 public:
  One(Wakes& wakes, std::shared_ptr<Place> place, std::list<std::function<void()>>::iterator at)
      : wakes_(wakes), place_(std::move(place)), at_(at) {}
  ~One() override {
    place_->tasks.erase(at_);
    if (!place_->tasks.empty()) return;
    place_->over = true;
    place_->watching.reset();
    wakes_.places_.erase(place_->topic);
  }
  One(const One&) = delete;
  One& operator=(const One&) = delete;

 private:
  Wakes& wakes_;
  const std::shared_ptr<Place> place_;
  const std::list<std::function<void()>>::iterator at_;
};

std::unique_ptr<Wakes::Subscription> Wakes::subscribe(const std::string& topic,
                                                      std::function<void()> task) {
  auto& place = places_[topic];
  const bool fresh = !place;
  if (fresh) {
    place = std::make_shared<Place>();
    place->topic = topic;
  }
  place->tasks.push_back(std::move(task));
  auto out = std::make_unique<One>(*this, place, std::prev(place->tasks.end()));
  if (fresh) {
    open(place);
  } else if (place->watch) {
    http_.post([place = place] { wake(place); });
  }
  return out;
}

void Wakes::wake(const std::shared_ptr<Place>& place) {
  if (place->over) return;
  if (place->watch) place->watch->acknowledge();
  // A task may end subscriptions, its own too.
  const auto tasks = place->tasks;
  for (const auto& task : tasks) {
    if (!place->over) task();
  }
}

void Wakes::poll(const std::shared_ptr<Place>& place) {
  if (place->over || place->watch) return;
  wake(place);
  http_.later(kPoll, [this, place] { poll(place); });
}

Result<std::unique_ptr<Watch>> Wakes::watch(const std::string& topic) {
  if (topic.empty()) return serve_.backend.events->watch();
  const std::string_view name = std::string_view(topic).substr(1);
  if (topic.front() == '\x01') {
    auto queue = core::QueueName::parse(name);
    return queue ? serve_.backend.queue->watch(*queue) : queue.error();
  }
  if (topic.front() == '\x02') {
    auto id = core::ItemId::parse(name);
    return id ? serve_.backend.queue->watch_item(*id) : id.error();
  }
  if (topic == of_jobs()) return serve_.backend.slots->watch();
  auto resource = ResourceName::parse(topic);
  return resource ? serve_.backend.leases->watch(*resource) : resource.error();
}

void Wakes::open(const std::shared_ptr<Place>& place) {
  const bool queued = http_.work([this, place] {
    auto opened = watch(place->topic);
    auto watch = std::make_shared<std::unique_ptr<Watch>>(opened ? std::move(*opened) : nullptr);
    http_.post([this, place, watch, why = opened ? std::string() : opened.error().message] {
      if (place->over) return;
      if (!*watch) {
        serve_.log(cat("changes cannot be watched, looking twice a second instead: ", why));
        return poll(place);
      }
      place->watch = std::move(*watch);
      place->watching = http_.watch(place->watch->fd(), [weak = std::weak_ptr(place)] {
        if (const auto here = weak.lock()) wake(here);
      });
      wake(place);
    });
  });
  if (!queued) poll(place);
}

}  // namespace stint::server
