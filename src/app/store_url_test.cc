// What of a store URL is printed.
#include "app/store_url.h"

#include <gtest/gtest.h>

namespace stint::app {
namespace {

TEST(StoreUrlInPrint, HasTheUserAndNoPassword) {
  for (const auto& [url, shown] :
       {std::pair{"redis://:pw@h:1/2", "redis://h:1/2"},
        {"rediss://:pw@h?prefix=p", "rediss://h?prefix=p"},
        {"redis://ann:pw@h/0", "redis://ann@h/0"},
        {"postgres://ann:pw@h/d", "postgres://ann@h/d"},
        {"postgres://ann@h/d", "postgres://ann@h/d"},
        {"redis://h", "redis://h"},
        {"redis+unix:/s?user=ann&password=pw&db=1", "redis+unix:/s?user=ann&db=1"}}) {
    const auto parsed = parse_store_url(url);
    ASSERT_TRUE(parsed) << url << ": " << parsed.error().message;
    EXPECT_EQ(parsed->printable, shown);
  }
}

TEST(StoreUrlInPrint, ThatIsRefusedHasNoPasswordEither) {
  for (const auto& [url, shown] :
       {std::pair{"redis://:p/w@h", "'redis://h'"}, {"redis://ann:p/w@h", "'redis://ann@h'"}}) {
    const auto refused = parse_store_url(url);
    ASSERT_FALSE(refused) << url;
    EXPECT_TRUE(refused.error().message.starts_with(shown)) << refused.error().message;
  }
}

TEST(StoreUrlPaths, DetoursAreTakenOut) {
  const auto path = [](const char* url) { return parse_store_url(url).value().path; };
  for (const char* url : {"sqlite:/tmp/./s.db", "sqlite:/tmp//s.db", "sqlite:/tmp/../tmp/s.db"}) {
    EXPECT_EQ(path(url), "/tmp/s.db") << url;
  }
  EXPECT_EQ(path("sqlite:./s.db"), path("sqlite:s.db"));
  EXPECT_EQ(parse_store_url("sqlite:./s.db").value().identity(),
            parse_store_url("sqlite:s.db").value().identity());
  EXPECT_EQ(path("sqlite:/tmp/.hidden/s.db"), "/tmp/.hidden/s.db");
}

}  // namespace
}  // namespace stint::app
