#include "server/streams.h"

#include "api/json.h"
#include "server/event_text.h"
#include "server/visit.h"

namespace stint::server {
namespace {

constexpr Millis kBeat{15'000};
constexpr std::size_t kPage = 500;
constexpr std::size_t kMostWaiting = std::size_t{1} << 20U;  // bytes that a slow client may owe us

}  // namespace

Streams::StreamPtr Streams::open(const VisitPtr& visit) {
  auto stream = std::make_shared<Stream>();
  stream->caller = visit->caller;
  stream->feed = visit->call->stream({.status = 200,
                                      .body = "retry: 1000\n\n",
                                      .fields = {{"X-Request-Id", visit->id}},
                                      .type = "text/event-stream"});
  open_.push_back(stream);
  metrics_.streams = static_cast<std::int64_t>(open_.size());
  beat(stream);
  return stream;
}

bool Streams::over(const StreamPtr& stream) {
  if (!stream->wakes) return true;
  if (!stream->feed->gone()) return false;
  drop(stream);
  return true;
}

void Streams::drop(const StreamPtr& stream) {
  stream->wakes.reset();
  open_.remove(stream);
  metrics_.streams = static_cast<std::int64_t>(open_.size());
}

std::size_t Streams::count() {
  const auto all = open_;
  for (const StreamPtr& one : all) (void)over(one);
  return open_.size();
}

void Streams::turn_out(const std::function<bool(const Caller&)>& out) {
  const auto all = open_;
  for (const StreamPtr& one : all) {
    if (over(one) || !out(one->caller)) continue;
    drop(one);
    one->feed->end();
  }
}

// So that both sides notice when the other is gone.
void Streams::beat(const StreamPtr& stream) {
  http_.later(kBeat, [this, stream] {
    if (over(stream)) return;
    if (stream->feed->waiting() == 0) stream->feed->put(": still here\n\n");
    beat(stream);
  });
}

void Streams::watch(const VisitPtr& visit, const std::string& resource) {
  const StreamPtr stream = open(visit);
  stream->wakes = wakes_.subscribe(resource, [this, weak = std::weak_ptr(stream)] {
    const auto here = weak.lock();
    if (here && !over(here) && here->feed->waiting() < kMostWaiting) {
      here->feed->put("event: changed\ndata: {}\n\n");
    }
  });
}

void Streams::follow(const VisitPtr& visit, const std::string& prefix, const std::string& after) {
  const StreamPtr stream = open(visit);
  stream->prefix = prefix;
  stream->after = after;
  stream->from_now = after.empty();
  stream->wakes = wakes_.subscribe("", [this, weak = std::weak_ptr(stream)] {
    if (const auto here = weak.lock()) read(here);
  });
}

void Streams::read(const StreamPtr& stream) {
  if (over(stream)) return;
  if (stream->reading || stream->feed->waiting() > kMostWaiting) {
    stream->again = true;
    if (!stream->reading) http_.later(Millis(200), [this, stream] { read(stream); });
    return;
  }
  stream->reading = true;
  stream->again = false;
  const bool queued = http_.work([this, stream] {
    // From now on: the newest one is not told, what follows it is.
    auto events = serve_.backend.events->list({.after = stream->after,
                                               .prefix = stream->from_now ? "" : stream->prefix,
                                               .limit = stream->from_now ? 1 : kPage,
                                               .newest = stream->from_now});
    http_.post([this, stream, events = std::move(events)] {
      stream->reading = false;
      if (over(stream)) return;
      if (!events) {
        // The client comes back by itself, from where it was.
        stream->feed->end();
        return;
      }
      const bool first = std::exchange(stream->from_now, false);
      if (first && !events->empty()) {
        stream->after = events->back().number;
      } else if (!first) {
        put(stream, *events);
      }
      if (stream->again || first || events->size() == kPage) read(stream);
    });
  });
  if (queued) return;
  stream->reading = false;
  http_.later(Millis(200), [this, stream] { read(stream); });
}

void Streams::put(const StreamPtr& stream, const std::vector<api::Event>& events) {
  for (const api::Event& event : events) {
    stream->after = event.number;
    if (!stream->caller.reaches(event.resource)) continue;
    stream->feed->put(event_text(event.number, event.kind, api::to_json(event)));
  }
}

void Streams::close() {
  const auto all = open_;
  for (const StreamPtr& one : all) {
    one->wakes.reset();
    one->feed->end();
  }
  open_.clear();
}

}  // namespace stint::server
