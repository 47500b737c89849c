// A rule as a scheduler sends it.
#include <gtest/gtest.h>

#include "api/slots_json.h"
#include "base/text.h"
#include "schedule/config.h"

namespace stint::api {
namespace {

Result<core::Zone> any_zone(const std::string& /*name*/) { return core::Zone(); }

// Otherwise two schedulers of one job take it from each other, and its slots are passed over.
TEST(SlotsWire, ARuleWithoutADigestHasTheOneThatTheConfigurationFileGives) {
  for (const char* tz : {"", "UTC", "Europe/Berlin"}) {
    for (const char* schedule : {"0 3 * * *", "TZ=Asia/Tokyo 0 3 * * *"}) {
      const auto config =
          schedule::parse_config(cat("[job.j]\nschedule = \"", schedule, "\"\ncommand = \"true\"\n",
                                     *tz == '\0' ? "" : cat("tz = \"", tz, "\"\n")),
                                 "stint.toml", any_zone);
      ASSERT_TRUE(config.has_value()) << config.error().message;
      ASSERT_EQ(config->jobs.size(), 1U) << config->problems.front().message;
      const auto json = JsonValue::parse(cat("{\"name\":\"j\",\"schedule\":\"", schedule,
                                             "\",\"tz\":\"", tz, "\",\"loaded_at_ms\":1}"));
      const auto rule = parse_rule(json.value(), any_zone);
      ASSERT_TRUE(rule.has_value()) << rule.error().message;
      EXPECT_EQ(rule->digest, config->jobs.front().rule.digest) << tz << " " << schedule;
    }
  }
}

}  // namespace
}  // namespace stint::api
