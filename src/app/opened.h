// From a store URL to the objects behind it. The only place that names a concrete store.
#pragma once

#include <functional>
#include <memory>

#include "api/batch.h"
#include "api/events.h"
#include "api/fences.h"
#include "api/kept.h"
#include "api/keys.h"
#include "api/leases.h"
#include "api/once.h"
#include "api/queue.h"
#include "api/slots.h"
#include "app/anchor_file.h"
#include "app/state_files.h"
#include "app/store_url.h"
#include "base/random.h"

namespace stint::store {
class Store;
}
namespace stint::service {
class Ledger;
class LeaseService;
class FenceService;
class QueueService;
class SlotService;
class KeyService;
class OnceService;
class WatchedStore;
}  // namespace stint::service
namespace stint::client {
class Connected;
struct ToldFinding;
}  // namespace stint::client

namespace stint::app {

struct OpenOptions {
  StoreUrl url;
  std::string state_directory;  // for anchors; empty: keep none
  bool may_create = true;
  std::string key = {};  // of a server or a `do:` store; empty: none
};

class Opened {
 public:
  static Result<std::unique_ptr<Opened>> open(const OpenOptions& options, const Clock& clock,
                                              Random& random);
  // The same on a store that is open already. REQUIRES: no server's address.
  static Result<std::unique_ptr<Opened>> open_on(std::unique_ptr<store::Store> store,
                                                 const OpenOptions& options, const Clock& clock,
                                                 Random& random);
  ~Opened();
  // The end of one for a process that ends now. What only gives memory back, and closes what the
  // kernel closes, is left to it: a fiftieth of a short `stint run`.
  static void leave(std::unique_ptr<Opened> opened);
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  api::Leases& leases();
  api::Events& events();
  api::Fences& fences();
  // Made when it is first asked for.
  Result<api::Queue*> queue();
  api::Slots& slots();
  api::Keys& keys();
  // Null where verbs gain nothing by being done together.
  api::BatchedLeases* batch();
  // Null: over HTTP, the server keeps them.
  api::KeptAnswers* answers();
  // For one request that has an idempotency key. REQUIRES: answers().
  api::Keeping keeping(const api::Once& once);
  // What this store can lose of what it has acknowledged; empty: it claims to lose nothing.
  std::string caveat() const;
  // The store itself, for who examines it; null: over HTTP.
  store::Store* bare() { return store_.get(); }
  // What is wrong with the store, in words; empty: nothing, or it is a server's.
  std::string trouble() const;
  // Refusals that were counted are written now, apart from any answer.
  void flush();
  // Removes answers to requests whose time is over (service/once_records.h), now and then: one
  // page of them, from `after` on. The answer: where to go on; empty: at the end.
  Result<std::string> sweep(const std::string& after);

 private:
  Status connect(const OpenOptions& options, const Clock& clock, Random& random);
  Opened() = default;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<AnchorFile> anchors_;
  std::unique_ptr<service::WatchedStore> watched_;  // the same store: what all services see
  std::unique_ptr<service::Ledger> ledger_;
  std::unique_ptr<service::LeaseService> leases_;
  std::unique_ptr<service::FenceService> fences_;
  std::function<Result<std::unique_ptr<api::Queue>>()> make_queue_;
  std::unique_ptr<api::Queue> queue_;
  std::unique_ptr<service::SlotService> slots_;
  std::unique_ptr<service::KeyService> keys_;
  std::unique_ptr<service::OnceService> answers_;
  std::function<api::Keeping(const api::Once&)> make_keeping_;
  std::unique_ptr<client::Connected>
      client_;  // instead of all of them: a server's address was given
};

// The bare store behind the URL, without a look at its life: for examining and moving it.
Result<std::unique_ptr<store::Store>> open_store(const OpenOptions& options, const Clock& clock);

// Whether this machine or the URL remembers another one: whatever writes to a restored store helps
// it over what is remembered of it. G12
Status check_known(store::Store& store, const OpenOptions& options);
// Both in one.
Result<std::unique_ptr<store::Store>> open_known_store(const OpenOptions& options,
                                                       const Clock& clock);

// Has the doctor of the server behind the URL examine its store; for how, see client/doctor.h.
bool is_server(const StoreUrl& url);
Status examine_through_server(const OpenOptions& options, const Clock& clock, Random& random,
                              const std::function<void(const client::ToldFinding&)>& tell);

// Where this machine remembers the store; null where nothing is kept.
std::unique_ptr<AnchorFile> anchor_file(const OpenOptions& options);

// An operator's word that a restored or copied store is to be used.
struct AcceptRestored {
  std::string why;
  std::string by;
  Token past;
  bool keep_keys = false;  // those that were revoked since stay in force
};
struct Accepted {
  Generation generation;
  Token floor;
  std::vector<std::string> keys_revoked;  // since; in force again, if they are to be kept
  std::vector<std::string> keys_gone;
};
Result<Accepted> accept_restored(const OpenOptions& options, const Clock& clock, Random& random,
                                 const AcceptRestored& word);

}  // namespace stint::app
