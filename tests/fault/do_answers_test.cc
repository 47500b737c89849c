// do://: what every answer of a server means, and that unknown stays unknown.
#include "tests/fault/do_fixture.h"

namespace stint::test {
namespace {

struct Row {
  std::string name;
  int status;
  std::string body;
  std::string commit;
  int commits;  // how often a commit is sent
  std::string read;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

constexpr const char* kInvalid = R"({"code":"invalid","message":"too long"})";
constexpr const char* kProtocol =
    R"({"code":"protocol","message":"this Worker speaks protocol 0"})";

std::vector<Row> rows() {
  return {
      {"WrongSecret", 401, R"({"code":"denied","message":"no"})", "denied", 1, "denied"},
      {"Forbidden", 403, "", "denied", 1, "denied"},
      {"TooOften", 429, "error code: 1015", "unavailable", 3, "unavailable"},
      {"Overloaded", 503, "", "unknown_outcome", 1, "unavailable"},
      {"Failed", 500, R"({"code":"unsure","message":"reset"})", "unknown_outcome", 1,
       "unavailable"},
      {"TimedOutUpstream", 408, "", "unknown_outcome", 1, "unavailable"},
      {"GatewayTimedOut", 524, "", "unknown_outcome", 1, "unavailable"},
      {"DiskFull", 507, R"({"code":"full","message":"SQLITE_FULL"})", "unavailable", 1,
       "unavailable"},
      {"TooLong", 413, kInvalid, "invalid", 1, "invalid"},
      {"NoSuchRoute", 404, "", "unavailable", 1, "unavailable"},
      {"Redirected", 302, "", "unavailable", 1, "unavailable"},
      {"OldWorker", 400, kProtocol, "unavailable", 1, "unavailable"},
      {"APageInstead", 200, "<html>", "unknown_outcome", 1, "unavailable"},
      {"NothingInIt", 200, "{}", "unknown_outcome", 1, "unavailable"},
      {"AConflictBeyondTheSteps", 200, R"({"revision":"1","now_ms":1,"conflict":7})",
       "unknown_outcome", 1, "unavailable"},
      {"TooFewVersions", 200, R"({"revision":"1","now_ms":1,"versions":[],"entries":[]})",
       "unknown_outcome", 1, "unavailable"},
      {"AVersionThatIsNone", 200,
       R"({"revision":"1","now_ms":1,"versions":["x"],"entries":[{"value":"v","version":"0"}]})",
       "unknown_outcome", 1, "unavailable"}};
}

class DoAnswer : public ::testing::TestWithParam<Row> {};
INSTANTIATE_TEST_SUITE_P(Every, DoAnswer, ::testing::ValuesIn(rows()),
                         [](const auto& row) { return row.param.name; });

TEST_P(DoAnswer, MeansWhatTheTableSays) {
  const Row& row = GetParam();
  const Parrot server(row.status, row.body);
  const auto store = open_do(server.port());
  const auto committed = store->commit({a_step(Step::Kind::Set, "k", "v")}, store::Sync::Durable);
  EXPECT_EQ(word_of(committed), row.commit) << (committed ? "" : committed.error().message);
  EXPECT_EQ(server.asked(), row.commits);
  const auto reading = store->read({"k"});
  EXPECT_EQ(word_of(reading), row.read);
  const auto watch = store->watch("k");
  ASSERT_FALSE(watch);
  for (const std::string& said :
       {committed.error().message, reading.error().message, watch.error().message}) {
    EXPECT_EQ(said.find(WorkerdServer::kSecret), std::string::npos) << said;
  }
}

TEST(DoAnswers, AnOldWorkerIsNamedWithBothVersions) {
  const Parrot server(400, kProtocol);
  const auto reading = open_do(server.port())->read({"k"});
  ASSERT_FALSE(reading);
  EXPECT_NE(reading.error().message.find("protocol 0"), std::string::npos);
  EXPECT_NE(reading.error().message.find("protocol 1"), std::string::npos);
}

TEST(DoAnswers, TheSecretIsNotShownWhenTheServerRepeatsIt) {
  const Parrot server(500, cat(R"({"message":"what is )", WorkerdServer::kSecret, R"("})"));
  const auto reading = open_do(server.port())->read({"k"});
  ASSERT_FALSE(reading);
  EXPECT_EQ(reading.error().message.find(WorkerdServer::kSecret), std::string::npos);
}

}  // namespace
}  // namespace stint::test
