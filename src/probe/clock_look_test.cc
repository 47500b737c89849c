// Skew and drift, as numbers with their bounds.
#include "probe/clock_look.h"

#include <gtest/gtest.h>

#include "store/memory/memory_store.h"
#include "store/shared_store.h"
#include "tests/conformance/stores.h"

namespace stint::probe {
namespace {

using Level = store::Finding::Level;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Its clock is off, and each answer takes as long as told: the time is told on half the way.
class FarStore final : public store::SharedStore {
 public:
  FarStore(std::shared_ptr<store::Store> store, testing::FakeClock& here, testing::FakeClock& there)
      : SharedStore(std::move(store)), here_(here), there_(there) {}
  Result<store::Reading> read(const std::vector<std::string>& keys) override {
    const Nanos half = ways_.empty() ? Nanos(milliseconds(50)) : ways_.back();
    if (!ways_.empty()) ways_.pop_back();
    pass(half);
    auto reading = SharedStore::read(keys);
    pass(half);
    return reading;
  }
  std::vector<Nanos> ways_ = {};  // the last one first

 private:
  void pass(Nanos length) {
    here_.advance(length);
    there_.advance(length);
  }
  testing::FakeClock& here_;
  testing::FakeClock& there_;
};

class ClockLookTest : public ::testing::Test {
 protected:
  ClockLook look() {
    auto look = look_at_clock(store_, "k", here_);
    return look.value().value();
  }
  testing::FakeClock here_;
  testing::FakeClock there_;
  FarStore store_{std::make_shared<store::MemoryStore>(there_), here_, there_};
};

TEST_F(ClockLookTest, TheQuickestAnswerIsTakenAndHalfItsWayIsTheBound) {
  there_.advance(seconds(1));
  store_.ways_ = {milliseconds(40), milliseconds(30), milliseconds(4), milliseconds(20),
                  milliseconds(60)};
  const ClockLook seen = look();
  EXPECT_EQ(seen.bound, Nanos(milliseconds(4)));
  EXPECT_EQ(seen.ahead, Nanos(seconds(1)));
  const store::Finding finding = skew_finding(seen);
  EXPECT_EQ(finding.level, Level::Ok);
  EXPECT_NE(finding.text.find("+1000.0 ms"), std::string::npos) << finding.text;
  EXPECT_NE(finding.text.find("\u00b15.0 ms"), std::string::npos) << finding.text;
}

TEST_F(ClockLookTest, ASkewAboveTwoSecondsIsWarnedOfEitherWay) {
  ClockLook seen{.ahead = milliseconds(2050), .bound = milliseconds(50)};
  EXPECT_EQ(skew_finding(seen).level, Level::Ok) << "it may be two seconds";
  seen.ahead = milliseconds(2052);
  EXPECT_EQ(skew_finding(seen).level, Level::Warn);
  seen.ahead = seconds(-7200);
  EXPECT_EQ(skew_finding(seen).level, Level::Warn);
  EXPECT_NE(skew_finding(seen).text.find("-7200 s"), std::string::npos) << skew_finding(seen).text;
}

TEST_F(ClockLookTest, DriftIsTheDifferenceOfTwoLooks) {
  const ClockLook first = look();
  here_.advance(seconds(10));
  there_.advance(seconds(10) + milliseconds(3));
  const store::Finding even = drift_finding(first, look());
  EXPECT_EQ(even.level, Level::Ok);
  EXPECT_NE(even.text.find("+3.0 ms"), std::string::npos) << even.text;
  EXPECT_NE(even.text.find("\u00b1100.0 ms"), std::string::npos) << even.text;
  here_.advance(milliseconds(160));
  const store::Finding slow = drift_finding(first, look());
  EXPECT_EQ(slow.level, Level::Warn) << slow.text;
  EXPECT_NE(slow.text.find("-157.0 ms"), std::string::npos) << slow.text;
}

}  // namespace
}  // namespace stint::probe
