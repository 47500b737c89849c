// Stint's C++ face: hold a lease while you work, and know when to stop.
//
//   auto client = stint::Client::open();                       // the store that `stint` would use
//   if (!client) return fail(client.error()->message);
//   auto holder = stint::Holder::acquire(*client, {.resource = "blog-repo", .ttl = 30s});
//   if (const auto* refused = holder.get_if<stint::Refused>()) return skip(refused->owner);
//   if (!holder) return fail(holder.error()->message);
//   for (const Page& page : pages) {
//     if (holder->stop_token().stop_requested()) return lost(*holder->lost());
//     publish(page, holder->token());                          // the target refuses older tokens
//   }
//   // Leaving the scope gives the lease back.
//
// A lease is the right to try; only the token, compared at the target in the same step as the
// write, keeps a late write out. Stopping in time makes late writes rare; it cannot make them
// impossible.
//
// Stands on the standard library alone. Nothing throws, except that memory or threads run out.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "stint/error.h"
#include "stint/lease.h"
#include "stint/outcome.h"

namespace stint {

class Holder;
namespace lib {
struct ClientState;
struct Inside;
class Hold;
Hold& hold_of(const Holder& holder);
}  // namespace lib

// The clock of deadlines: it goes on while the machine sleeps, as leases do (CLOCK_BOOTTIME).
struct BootClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock, duration>;
  static constexpr bool is_steady = true;
  static time_point now() noexcept;
};

// To wait for ever.
inline constexpr std::chrono::milliseconds kForever = std::chrono::milliseconds::max();

// Every member of an options struct has a default: name those that you want.
struct ClientOptions {
  // "sqlite:/var/lib/blog/stint.db"; empty: as `stint` resolves it (STINT_STORE_FILE, STINT_STORE,
  // the configuration file, else the user's own database).
  std::string store = {};
  // Of all that this client acquires; empty: STINT_OWNER, RUN_ID, the configuration file, else one
  // made up for each acquisition.
  std::string owner = {};
  bool may_create = true;  // false: a store that is not there is an error
};

// An operator's order: it moves the token, and who and why go on record.
struct Order {
  std::string resource = {};
  std::uint64_t expected = 0;  // the token that you saw; any other: Lost, and nothing is changed
  std::string why = {};        // REQUIRES: not empty
  std::string by = {};         // empty: the user of this process
};

// An open store.
//
// A handle: Holders keep what they need of it, so it may be gone before they are.
// Thread safety: any thread, all at once.
//
// In a child of fork() it is of no use, nor are its Holders: the connections, locks and threads are
// the parent's. There every verb answers Invalid, holding() is false, lost() says why, and the
// destructors release and close nothing. Open anew in the child; a sqlite: store only if the parent
// had none open at the fork(), since SQLite cannot tell the locks of the two apart (Unavailable).
class Client {
 public:
  // Opens, and by default creates. Reads the environment once: not beside a setenv() elsewhere.
  // Errors: Invalid (a store or setting that makes no sense), Unavailable (cannot be opened; a
  // store that went back in time is one, until an operator has looked at it), Denied.
  static Outcome<Client> open(const ClientOptions& options = {});

  // How the lease stands. A resource that nobody ever held is NOT an error: token = 0.
  Outcome<Lease> get(std::string_view resource) const;
  // All under a prefix, sorted by name; empty prefix: all. None is NOT an error.
  Outcome<std::vector<Lease>> list(std::string_view prefix = {}) const;
  // Takes the lease away from its holder, whose stop_token() fires at once. Whether its last write
  // has landed is not known by that: only the new token at the target settles it.
  // The targets that are remembered as sealed (stint/guard.h) are sealed with the new token before
  // it is done; Unavailable: the order is carried out, but one of them was not reached. Also of
  // transfer().
  Outcome<Lease, Lost> revoke(const Order& order) const;
  // Takes it away and reserves it for `to`. ttl: of the reservation; zero: the lease's own.
  Outcome<Lease, Lost> transfer(const Order& order, std::string_view to,
                                std::chrono::milliseconds ttl = {}) const;

 private:
  friend class Holder;
  friend struct lib::Inside;
  explicit Client(std::shared_ptr<lib::ClientState> state) : state_(std::move(state)) {}
  // Shared with the Holders: whichever goes last closes the store.
  std::shared_ptr<lib::ClientState> state_;
};

struct AcquireOptions {
  std::string resource = {};         // UTF-8, 1 to 512 bytes, no control characters
  std::string owner = {};            // empty: the client's
  std::chrono::milliseconds ttl{0};  // zero: as configured, else 90 s
  // How long to wait while another has it; kForever: no limit.
  std::chrono::milliseconds wait{0};
  std::string note = {};                  // what others are told that you are doing
  std::chrono::milliseconds max_hold{0};  // the longest that this grant may last; zero: no limit
  // Nobody acquires it before this long after the start, or after an unclean end.
  std::chrono::milliseconds at_least{0};
  std::chrono::milliseconds cooldown{0};
  // How long your work needs to stop once it is told to: the deadline stands this much before the
  // lease runs out. Empty: the smaller of 10 s and ttl/6.
  std::optional<std::chrono::milliseconds> stop_within = {};
  std::stop_token cancel = {};  // ends the wait early, as if its time were over
};

// A lease that is held, renewed in the background until it is released or lost.
//
// Two threads of its own: one renews (every ttl/3), one watches the deadline and the store. They
// take no signals.
//
// The lease is lost when the store says so (expired, revoked, transferred ...: at once, where the
// store wakes its watchers), or when the deadline has passed without an acknowledged renewal: the
// store cannot be reached, or the machine slept. From then on it stays lost, whatever the store
// says later: it is never renewed again. Stop the work, then reacquire() if you want to go on.
//
// Thread safety: all const members, check() and progress() from any thread. release(), reacquire(),
// moving and destroying: one thread, while no other is inside. After a move only assign or destroy.
class Holder {
 public:
  // Takes the lease and starts to renew it; blocks for `wait` at most (and the store's own
  // timeout).
  //
  // Refused: another has it, also after the wait and after `cancel`. Two Holders exclude each
  // other, also with one owner and in one process; a Holder inside `stint run` of the same resource
  // is refused too.
  //
  // Errors: Invalid (a name, or times whose inequality cannot hold: nothing was changed),
  // Unavailable, UnknownOutcome (it may have been granted; then it runs out by itself, as nothing
  // renews it).
  static Outcome<Holder, Refused> acquire(const Client& client, const AcquireOptions& options);

  Holder(Holder&& other) noexcept;
  // Releases what it held before.
  Holder& operator=(Holder&& other) noexcept;
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  // Releases. What cannot be released runs out by itself. Waits for calls to the store that are
  // under way: as long as its timeout, at the worst.
  ~Holder();

  const std::string& resource() const;
  const std::string& owner() const;
  // The fencing token: give it to whatever you write to. Constant, also when lost.
  std::uint64_t token() const;
  const std::string& generation() const;
  // What the holder before reported last; empty: nothing.
  const std::string& previous_progress() const;

  // Requested once, when the lease is lost: begin to stop, you have `stop_within`. NOT requested by
  // release(): the work is over by then. Callbacks run on the thread that noticed it (a thread of
  // this Holder, or yours inside holding(), check() or progress()); they should be short, and must
  // not release or destroy this Holder.
  std::stop_token stop_token() const;
  // Within the deadline, not lost, not released. Asks no store. Right after the machine woke up it
  // knows before any thread has: it requests the stop first, and then says no.
  bool holding() const;
  // When the work must begin to stop, as of now: every acknowledged renewal moves it on.
  BootClock::time_point deadline() const;
  // Empty: not lost; also after release().
  std::optional<Lost> lost() const;

  // Asks the store. Lost: requests the stop first. A fault is NOT a loss: renewals go on until the
  // deadline. A yes is true of the moment at which the store was asked; before a write show the
  // token.
  Outcome<Lease, Lost> check();
  // Reports how far the work is; the successor gets it as previous_progress(). Not a heartbeat.
  Outcome<Lease, Lost> progress(std::string_view marker);

  // Ends the renewal and gives the lease back. REQUIRES: the work under it is over. A second time
  // is NOT an error. After a fault it may be tried again; the lease is not renewed any more in
  // either case.
  Outcome<Lease, Lost> release();

  // Acquires anew, with the same options: a new Holder, with a new token and a new stop_token().
  // Never a renewal of the old one, which stays lost and is released if the store still counts it
  // as held. Errors: Invalid while it is still held, otherwise as acquire().
  // REQUIRES: the work under the old token has stopped.
  //
  //   if (holder->lost()) {
  //     auto again = holder->reacquire();
  //     if (again) *holder = std::move(*again);
  //   }
  Outcome<Holder, Refused> reacquire();

 private:
  friend lib::Hold& lib::hold_of(const Holder& holder);
  explicit Holder(std::shared_ptr<lib::Hold> hold) : hold_(std::move(hold)) {}
  static Outcome<Holder, Refused> acquire(const std::shared_ptr<lib::ClientState>& client,
                                          const AcquireOptions& options);
  void end() noexcept;
  // Shared with the Hold's own watching thread.
  std::shared_ptr<lib::Hold> hold_;
};

}  // namespace stint
