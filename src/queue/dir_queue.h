// api::Queue on a plain directory, for fleets with nothing but a mount: no server, no database, no
// lock. Every step that decides something is one rename of the exact present name (dir_files.h).
//
// Completion: result and follow-ups are staged, the one rename claimed/... -> done/ITEM.eN is the
// commit, then anybody moves the follow-ups on (the janitor rolls forward). A file that is moved
// into queue/ by hand is an item at epoch 0, adopted by the next claim. Deadlines are by the file
// server's clock.                                                                       G8 G10
//
// Thread safety: any thread.
#pragma once

#include <atomic>
#include <map>

#include "api/events.h"
#include "api/queue.h"
#include "base/mutex.h"
#include "base/random.h"
#include "os/wake_files.h"
#include "queue/dir_files.h"

namespace stint::queue {

class DirQueue final : public api::Queue {
 public:
  // `path`: the folder of all queues; made when the first one is. `events` may be null.
  DirQueue(std::string path, api::Events* events, const Clock& clock, Random& random);

  using api::Queue::configure;
  Status configure(const api::QueueConfig& config, const std::optional<api::Once>& once) override;
  Result<api::QueueConfig> config(const core::QueueName& queue) override;
  Result<std::vector<api::QueueConfig>> queues() override;
  Result<api::PutAnswer> put(const api::PutRequest& request) override;
  Result<api::ClaimAnswer> claim(const api::ClaimRequest& request) override;
  Result<api::ItemAnswer> start(const api::ItemRef& ref, bool reports) override;
  Result<api::ItemAnswer> renew(const api::ItemRef& ref, Millis ttl) override;
  Result<api::ItemAnswer> checkpoint(const api::ItemRef& ref, const std::string& marker,
                                     const std::optional<std::string>& data) override;
  Result<api::ItemAnswer> complete(const api::Completion& completion) override;
  Result<api::ItemAnswer> fail(const api::ItemRef& ref, const std::string& why,
                               std::optional<Millis> later) override;
  Result<api::ItemAnswer> release(const api::ItemRef& ref) override;
  using api::Queue::order;
  Result<api::ItemAnswer> order(const core::ItemId& id, const core::ItemOrder& order,
                                const std::optional<api::Once>& once) override;
  Result<std::optional<api::QueueItem>> show(const core::ItemId& id) override;
  Result<std::vector<api::QueueItem>> list(const api::ItemPage& page) override;
  Result<api::QueueCounts> count(const core::QueueName& queue) override;
  api::QueueTraffic traffic() const override;
  Result<api::Tended> tend(const core::QueueName& queue) override;
  Result<std::unique_ptr<Watch>> watch(const core::QueueName& queue) override;
  Result<std::unique_ptr<Watch>> watch_item(const core::ItemId& id) override;

 private:
  struct Seen {
    core::ItemId id;
    Place place;
    core::ItemRecord record;
    Notes put;
    Token next;  // the epoch that a claim or an order gives next
    WallTime now{};
  };

  std::string nonce();
  std::string folder_path(const core::QueueName& queue) const;
  Result<QueueFolder> folder(const core::QueueName& queue, bool create = false) const;
  Result<WallTime> server_now(const QueueFolder& folder);
  std::optional<Place> find(const QueueFolder& folder, const std::string& suffix) const;
  Result<std::optional<Seen>> look(const QueueFolder& folder, const core::ItemId& id);
  Result<Seen> seen_of(const QueueFolder& folder, const core::ItemId& id, const Place& place);
  void add_notes(const QueueFolder& folder, const Seen& seen, core::Item& item) const;

  struct Settled {
    core::ItemDecision decision;
    Seen seen;
    Millis granted_ttl{0};
  };
  // What is to be there before the rename. An errno; EEXIST: look again.
  using Prepare = std::function<int(const QueueFolder&, const Seen&, const core::ItemChange&)>;
  struct Before {
    Prepare at_leisure = nullptr;
    Prepare in_turn = nullptr;  // quick: the turn is taken
  };
  Result<std::optional<Settled>> settle(const core::ItemId& id, const core::ItemVerb& verb,
                                        const Before& before);
  Result<api::ItemAnswer> answer(const core::ItemId& id, const core::ItemVerb& verb,
                                 const Before& before);
  std::string target_of(const Seen& seen, const core::ItemChange& change,
                        const std::string& nonce) const;
  Result<bool> move(const QueueFolder& folder, Seen& seen, const core::ItemVerb& verb,
                    const core::ItemChange& change, const Before& before, Millis& granted);
  static std::map<std::string, Notes> notes_of_move(const core::ItemVerb& verb,
                                                    const core::Item& after);
  int note_order(const QueueFolder& folder, const Seen& seen, const core::ItemOrder& order,
                 const core::ItemChange& change);
  static int put_there(const QueueFolder& folder, const std::string& from, const std::string& to,
                       const core::ItemVerb& verb, const core::ItemChange& change);
  static int take_turn(const QueueFolder& folder, Seen& seen, const std::string& chance,
                       const std::map<std::string, std::string>& written);
  int prepare(const QueueFolder& folder, Seen& seen, const core::ItemVerb& verb,
              const core::ItemChange& change, const Before& before, const std::string& chance);
  void record(const core::ItemId& id, std::string_view kind, const core::Item& item);
  void note_stale(const core::ItemId& id, const core::ItemVerb& verb, core::ItemCause cause,
                  const core::Item* item);
  int stage(const QueueFolder& folder, const Seen& seen, const api::Completion& completion,
            const std::vector<core::ItemLimits>& limits, const std::string& making,
            std::vector<core::ItemId>& follow_ups);
  static int put_stage(const QueueFolder& folder, const Seen& seen, const std::string& making,
                       bool& second);
  static int read_staged(const QueueFolder& folder, const std::string& stem, std::string_view what,
                         std::string& bytes);
  static std::string stage_of(const QueueFolder& folder, const std::string& stem);
  static void settle_stage(const QueueFolder& folder, const std::string& stem);
  int finish(const QueueFolder& folder, const Seen& seen);
  static bool name_stage(const QueueFolder& folder, const std::string& stem, std::uint64_t turn);
  void move_follow_ups(const QueueFolder& folder, const std::string& stem);
  bool move_follow_up(const QueueFolder& folder, const std::string& path, const core::ItemId& id);
  void roll_forward(const QueueFolder& folder, const std::string& stem);
  int open_rolling(const QueueFolder& folder);
  int mark_rolling(const QueueFolder& folder, const std::string& stem);
  void roll_all_forward(const QueueFolder& folder);
  void roll_others_forward(const core::QueueName& but);
  bool came_to_nothing(const QueueFolder& folder, const std::string& stem) const;
  static bool strange(const QueueFolder& folder, bool proper_id, const Place& place);
  void adopt(const QueueFolder& folder, const core::QueueName& queue, const std::string& name);
  Result<std::optional<api::ClaimAnswer>> try_claim(const QueueFolder& folder,
                                                    const api::ClaimRequest& request,
                                                    const std::string& name);
  std::optional<std::string> kept_name(const core::QueueName& queue);
  void keep_names(const core::QueueName& queue, const std::vector<std::string>& names,
                  MonoTime start);
  MonoTime after(MonoTime start, Millis least) const;
  void look_anew(const core::QueueName& queue);
  bool tend_is_due(const core::QueueName& queue);
  Result<std::optional<api::ClaimAnswer>> claim_kept(const QueueFolder& folder,
                                                     const api::ClaimRequest& request);
  Result<std::optional<api::ClaimAnswer>> claim_reserved(const QueueFolder& folder,
                                                         const api::ClaimRequest& request);
  std::vector<std::string> claimable(const QueueFolder& folder, const core::QueueName& queue);
  bool needs_tending(const QueueFolder& folder, const core::ItemId& id, const Place& place);
  api::QueueItem view_of(const Seen& seen) const;
  void load(const QueueFolder& folder, const Seen& seen, api::QueueItem& view) const;
  Result<core::ItemId> key_holder(const QueueFolder& folder, const std::string& key,
                                  const core::ItemId& fresh);
  bool dropped(const QueueFolder& folder, const core::ItemId& id) const;
  static void forget_key(const QueueFolder& folder, const std::string& key, const core::ItemId& id);
  int settle_name(const QueueFolder& folder, const core::ItemId& id) const;
  int bear(const QueueFolder& folder, const core::ItemId& id, const std::string& path,
           const std::string& payload);
  Result<api::PutAnswer> put_as(const QueueFolder& folder, const core::ItemId& id,
                                const api::PutRequest& request, const core::ItemLimits& limits,
                                const std::string& parent);

  const std::string path_;
  api::Events* const events_;
  const Clock& clock_;
  const os::WakeFiles wakes_;

  // What this process saw of a queue just now.
  struct Shelf {
    std::vector<std::string> names;  // that may be claimed, in order
    MonoTime names_until{};          // after that they are too old
    int contention = 0;              // so many claims more, others are to be expected
    MonoTime tend_at{};              // not before that
  };

  mutable Mutex mutex_;
  std::map<std::string, Shelf> shelves_ GUARDED_BY(mutex_);
  Random& random_ GUARDED_BY(mutex_);
  core::ItemIds ids_ GUARDED_BY(mutex_);

  std::atomic<std::uint64_t> puts_ = 0;
  std::atomic<std::uint64_t> claims_ = 0;
  std::atomic<std::uint64_t> completions_ = 0;
  std::atomic<std::uint64_t> stale_ = 0;
  std::atomic<std::uint64_t> parked_ = 0;
};

}  // namespace stint::queue
