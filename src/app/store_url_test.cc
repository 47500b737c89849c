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

// What is none, because something was left out, may still have a password in it.
TEST(StoreUrlInPrint, ThatIsNoUrlHasNoPasswordEither) {
  for (const char* url :
       {"postgres:ann:s3cret@h/d", "redis::s3cret@h", "postgres://ann:s3cret/d", "redis://:s3cret",
        "etcd://h1:2379,ann:s3cret", "postgres//ann:s3cret@h", "postgrse://ann:s3cret@h",
        "http:/ann:s3cret@h", "etcd://ann:s3cret@h:x?tls=1"}) {
    const auto refused = parse_store_url(url);
    ASSERT_FALSE(refused) << url;
    EXPECT_EQ(refused.error().message.find("s3cret"), std::string::npos) << refused.error().message;
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

// What a machine remembers of a store, and its claims, go by this.
TEST(StoreUrlIdentity, TellsTwoStoresApart) {
  const auto identity = [](const char* url) { return parse_store_url(url).value().identity(); };
  EXPECT_NE(identity("postgres://a@h/d?port=15431"), identity("postgres://a@h/d?port=15432"));
  EXPECT_NE(identity("postgres://a@/d?host=/s&port=1"), identity("postgres://a@/d?host=/s&port=2"));
  EXPECT_NE(identity("postgres://a@h/d?port=15431"), identity("postgres://a@h/d"));
  EXPECT_NE(identity("postgres://a@h/d?schema=x"), identity("postgres://a@h/d"));
  EXPECT_NE(identity("redis://h/1"), identity("redis://h"));
  EXPECT_NE(identity("redis://h:6380"), identity("redis://h"));
  EXPECT_NE(identity("do://h/other"), identity("do://h"));
  EXPECT_NE(identity("do+http://127.0.0.1"), identity("do://127.0.0.1"));
}

TEST(StoreUrlIdentity, IsOneForOneStoreHoweverItIsWritten) {
  const auto identity = [](const char* url) { return parse_store_url(url).value().identity(); };
  const std::string postgres = identity("postgres://a@h/d");
  for (const char* url :
       {"postgresql://a@h/d", "postgres://a:pw@h:5432/d", "postgres://h/d?port=5432",
        "postgres://a@h/d?schema=stint", "postgres://a@h/d?sslmode=require"}) {
    EXPECT_EQ(identity(url), postgres) << url;
  }
  EXPECT_EQ(identity("redis://h:6379/0"), identity("redis://h"));
  EXPECT_EQ(identity("redis+unix:/s?db=0"), identity("redis+unix:/s"));
  EXPECT_EQ(identity("etcd://h:2379"), identity("etcd://h"));
  EXPECT_EQ(identity("do://h:443/stint"), identity("do://h"));
  EXPECT_EQ(identity("do+http://127.0.0.1:8787/"), identity("do+http://127.0.0.1/stint"));
}

}  // namespace
}  // namespace stint::app
