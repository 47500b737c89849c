// What a queue on a store writes into the ledger, and which times it takes.
#include "service/queue_service.h"

#include <gtest/gtest.h>

#include "store/shared_store.h"
#include "tests/schedule/desk.h"

namespace stint::service {
namespace {

using What = core::ItemOrder::What;

class QueueDesk : public ::testing::Test {
 protected:
  core::ItemId put() {
    return queue_
        .put({.queue = name_,
              .payload = "x",
              .priority = 0,
              .delay = {},
              .unique = {},
              .labels = {},
              .by = "me",
              .limits = core::ItemLimits{},
              .create = true})
        .value()
        .id;
  }
  static core::ItemOrder order(What what) {
    core::ItemOrder out;
    out.what = what;
    out.why = "w";
    out.by = "op";
    return out;
  }
  std::string last_kind() { return desk_.ledger.list({}).value().back().kind; }

  test::Desk desk_;
  QueueService queue_{desk_.store, desk_.ledger, desk_.clock, desk_.random};
  const core::QueueName name_ = core::QueueName::parse("jobs").value();
};

TEST_F(QueueDesk, OrdersAreToldUnderTheirNames) {
  const core::ItemId id = put();
  const std::pair<What, const char*> orders[] = {
      {What::Park, "item_parked"},         {What::Requeue, "item_requeued"},
      {What::Reassign, "item_reassigned"}, {What::Cancel, "item_cancelled"},
      {What::Replay, "item_replayed"},     {What::Cancel, "item_cancelled"},
      {What::Drop, "item_dropped"}};
  for (const auto& [what, kind] : orders) {
    const auto done = queue_.order(id, order(what));
    ASSERT_TRUE(done && std::holds_alternative<api::ItemDone>(*done)) << kind;
    EXPECT_EQ(last_kind(), kind);
  }
}

}  // namespace
}  // namespace stint::service
