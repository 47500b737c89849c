#include "store/etcd/opening.h"

#include <gtest/gtest.h>

#include "store/etcd/wire.h"

namespace stint::store::etcd {
namespace {

TEST(EtcdFacts, RefusesWhatIsTooOldAndWarnsOfWhatEndsLeasesEarlyOrLate) {
  for (const char* old : {"3.3.27", "2.3.8", "3.0.0"}) EXPECT_FALSE(facts_of(old)) << old;
  for (const char* no : {"", "3.4", "3.x.1", "3.4.1.2", "v3.4.1"}) EXPECT_FALSE(facts_of(no)) << no;
  for (const char* early : {"3.4.0", "3.4.30", "3.5.0", "3.5.12"}) {
    EXPECT_NE(facts_of(early).value().warning, "") << early;
  }
  // EVIDENCE-OF: G4
  for (const char* late : {"3.4.0", "3.4.31", "3.4.40"}) {
    EXPECT_NE(facts_of(late).value().warning.find("12291"), std::string::npos) << late;
  }
  EXPECT_EQ(facts_of("3.5.0").value().warning.find("12291"), std::string::npos);
  EXPECT_EQ(facts_of("3.4.31").value().warning.find("15247"), std::string::npos);
  for (const char* good : {"3.5.13", "3.5.21", "3.6.0", "3.6.0-rc.1", "4.0.0"}) {
    EXPECT_EQ(facts_of(good).value().warning, "") << good;
  }
}

TEST(EtcdWire, Base64IsItsOwnInverseAndRefusesRubbish) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(from_base64(base64(bytes)).value(), bytes);
    bytes += static_cast<char>(i * 7);
  }
  EXPECT_EQ(base64("any"), "YW55");
  for (const char* bad : {"a", "abc", "ab$=", "a===", "=abc", "ab=c"}) {
    EXPECT_FALSE(from_base64(bad)) << bad;
  }
}

}  // namespace
}  // namespace stint::store::etcd
