#include "server/event_text.h"

#include <gtest/gtest.h>

namespace stint::server {
namespace {

TEST(EventText, IsThreeFieldsAndAnEmptyLine) {
  EXPECT_EQ(event_text("7", "granted", R"({"a":1})"), "id: 7\nevent: granted\ndata: {\"a\":1}\n\n");
}

TEST(EventText, NoFieldBreaksOutOfItsLine) {
  EXPECT_EQ(event_text("7", "x\n\ndata: {}\n\n", "{}"), "id: 7\ndata: {}\n\n");
  EXPECT_EQ(event_text("7\revent: granted", "x", "{}"), "event: x\ndata: {}\n\n");
  EXPECT_EQ(event_text("7", "x", "{\n\nevent: y\r}"),
            "id: 7\nevent: x\ndata: {\ndata: \ndata: event: y\ndata: }\n\n");
}

}  // namespace
}  // namespace stint::server
