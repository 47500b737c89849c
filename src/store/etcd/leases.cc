#include "store/etcd/leases.h"

#include "base/text.h"
#include "os/thread.h"

namespace stint::store::etcd {
namespace {

// A lease that nobody needs and that ends within this time is left to run out.
constexpr std::int64_t kSoonOver = 120;
constexpr std::size_t kMostWaiting = 4096;
constexpr Millis kRevoking{2000};
constexpr Millis kClosing{500};

}  // namespace

std::int64_t whole_seconds(Millis ttl) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(ttl).count();
  return seconds < 1 ? 1 : seconds;
}

Leases::~Leases() {
  std::thread thread;
  {
    const MutexLock lock(mutex_);
    closing_ = true;
    thread = std::move(thread_);
  }
  wake_.notify_all();
  if (thread.joinable()) thread.join();
}

Result<Granted> Leases::grant(std::int64_t seconds, const Deadline& deadline) {
  // Granted twice by a repetition, the first one runs out unused.
  const Reply reply = gateway_.ask("/v3/lease/grant", cat(R"({"TTL":")", seconds, R"("})"),
                                   deadline, Twice::Harmless);
  if (!reply) return *reply.error;
  const auto id = number_field(reply.body, "ID");
  const auto given = number_field(reply.body, "TTL");
  if (!id || !given || *id == 0 || *given < seconds) return damaged("lease");
  return Granted{*id, *given};
}

Result<std::optional<std::int64_t>> Leases::remaining(LeaseId id, const Deadline& deadline) {
  const Reply reply = gateway_.ask("/v3/lease/timetolive", cat(R"({"ID":")", id, R"("})"), deadline,
                                   Twice::Harmless);
  using Answer = std::optional<std::int64_t>;
  if (reply.refusal == Refusal::LeaseNotFound) return Answer();
  if (!reply) return *reply.error;
  const auto left = number_field(reply.body, "TTL");
  if (!left) return left.error();
  return *left < 0 ? Answer() : Answer(*left);
}

void Leases::revoke_later(LeaseId id, std::int64_t seconds) {
  if (id == 0 || seconds <= kSoonOver) return;
  {
    const MutexLock lock(mutex_);
    if (closing_ || waiting_.size() >= kMostWaiting) return;
    if (!thread_.joinable()) {
      auto started = os::start_thread("stint-revoker", "revoke leases", [this] { loop(); });
      if (!started) return;  // it runs out by itself
      thread_ = std::move(*started);
    }
    waiting_.push_back(id);
  }
  wake_.notify_one();
}

void Leases::loop() {
  std::optional<Deadline> closing;
  while (true) {
    LeaseId next = 0;
    {
      MutexLock lock(mutex_);
      wake_.wait(lock, [this]() REQUIRES(mutex_) { return closing_ || !waiting_.empty(); });
      if (closing_ && !closing) closing.emplace(clock_, kClosing);
      if (waiting_.empty() || (closing && closing->passed())) return;
      next = waiting_.front();
      waiting_.pop_front();
    }
    // Whatever comes of it: a lease that is not revoked runs out.
    [[maybe_unused]] const Reply done =
        gateway_.ask("/v3/lease/revoke", cat(R"({"ID":")", next, R"("})"),
                     closing ? *closing : Deadline(clock_, kRevoking), Twice::Harmless);
  }
}

}  // namespace stint::store::etcd
