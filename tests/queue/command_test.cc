// stint queue, as users run it: what it prints, its exit codes, and bad input.
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/cli/stint.h"

namespace stint::test {
namespace {

class QueueCommand : public ::testing::Test {
 protected:
  Finished queue(std::vector<std::string> words) {
    words.insert(words.begin(), "queue");
    return stint_(std::move(words));
  }
  std::string put(const std::string& payload, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"put", "builds", payload, "--create"};
    words.insert(words.end(), more.begin(), more.end());
    const Finished done = queue(words);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return std::string(trim(done.out));
  }
  std::string item(const std::string& id, const std::string& field) {
    return json_field(queue({"show", id, "--json"}).out, field);
  }
  Stint stint_;
};

TEST_F(QueueCommand, PutPrintsTheIdAndClaimThePayload) {
  const std::string id = put("hello world");
  EXPECT_TRUE(id.starts_with("builds-")) << id;
  const Finished claim = queue({"claim", "builds"});
  EXPECT_EQ(claim.exit_code, 0);
  EXPECT_EQ(claim.out, "hello world\n");
  EXPECT_EQ(queue({"claim", "builds"}).exit_code, 3);
  EXPECT_EQ(queue({"claim", "builds"}).out, "");
}

TEST_F(QueueCommand, TheJsonOfAClaim) {
  put("p", {"--label", "night", "--priority", "7"});
  const std::string json = queue({"claim", "builds", "--json", "--owner", "ann"}).out;
  EXPECT_EQ(json_field(json, "queue"), "builds");
  EXPECT_EQ(json_field(json, "epoch"), "1");
  EXPECT_EQ(json_field(json, "payload"), "p");
  EXPECT_EQ(json_field(json, "attempt"), "1");
  EXPECT_EQ(json_field(json, "owner"), "ann");
  EXPECT_EQ(json_field(json, "priority"), "7");
  EXPECT_EQ(json_field(json, "checkpoint"), "");
  EXPECT_NE(json.find("\"labels\":[\"night\"]"), std::string::npos);
}

TEST_F(QueueCommand, APayloadThatIsNotTextIsBase64) {
  Command command = stint_.command({"queue", "put", "builds", "-", "--create"});
  command.stdin_text = std::string("\xff\xfe\x00", 3);
  ASSERT_EQ(run(command).exit_code, 0);
  const std::string json = queue({"claim", "builds", "--json"}).out;
  EXPECT_EQ(json_field(json, "payload_base64"), "//4A");
}

// EVIDENCE-OF: G8
TEST_F(QueueCommand, ARenewalTellsWhatIsLeft) {
  for (const bool directory : {false, true}) {
    if (directory) stint_.use_store(cat("dir:", stint_.dir().file("mount")));
    ASSERT_EQ(queue({"put", "builds", "x", "--create"}).exit_code, 0);
    const Finished claimed = queue({"claim", "builds", "--ttl", "1h", "--json"});
    const std::string id = json_field(claimed.out, "id");
    const auto left = [&](const std::string& ttl) {
      const Finished done = queue({"renew", id, "--epoch", "1", "--ttl", ttl, "--json"});
      return parse_digits(json_field(done.out, "remaining_ms")).value_or(0);
    };
    EXPECT_GT(left("5s"), 3'000'000U);  // it never shortens
    EXPECT_GT(left("2h"), 7'000'000U);
  }
}

TEST_F(QueueCommand, AStaleEpochIsTwelveForEveryVerbAndChangesNothing) {
  const std::string id = put("x");
  ASSERT_EQ(queue({"claim", "builds", "--ttl", "100ms"}).exit_code, 0);
  ASSERT_TRUE(wait_until([&] { return queue({"claim", "builds"}).exit_code == 0; }));
  const std::string before = queue({"show", id}).out;
  const std::vector<std::vector<std::string>> verbs = {{"renew", id},
                                                       {"complete", id},
                                                       {"fail", id, "--why", "w"},
                                                       {"release", id},
                                                       {"checkpoint", id},
                                                       {"park", id, "--why", "w"},
                                                       {"requeue", id, "--why", "w"},
                                                       {"reassign", id, "--why", "w"},
                                                       {"cancel", id, "--why", "w"},
                                                       {"drop", id, "--why", "w"}};
  for (std::vector<std::string> words : verbs) {
    words.insert(words.end(), {"--epoch", "1"});
    const Finished done = queue(words);
    EXPECT_EQ(done.exit_code, 12) << words.front() << ": " << done.err;
    EXPECT_EQ(done.out, "");
  }
  // Nor without an epoch, while the claim is live.
  EXPECT_EQ(queue({"cancel", id, "--why", "w"}).exit_code, 12);
  EXPECT_EQ(queue({"cancel", id, "--why", "w"}).err.find("--epoch"), std::string::npos);
  const Finished json = queue({"complete", id, "--epoch", "1", "--json"});
  EXPECT_EQ(json_field(json.err, "code"), "lost");
  EXPECT_EQ(json_field(json.err, "cause"), "superseded");
  EXPECT_EQ(item(id, "epoch"), "2");
  EXPECT_EQ(item(id, "state"), "claimed");
  EXPECT_GT(stint_.events({"item_refused_stale", id}), 0);
}

TEST_F(QueueCommand, CompleteWithResultAndFollowUps) {
  const std::string id = put("x");
  ASSERT_EQ(queue({"claim", "builds"}).exit_code, 0);
  const std::string file = stint_.dir().file("result");
  write_text(file, "the result");
  const std::vector<std::string> words = {"complete", id,       "--epoch",    "1",      "--result",
                                          file,       "--then", "builds:a:b", "--then", "builds:c"};
  EXPECT_EQ(queue(words).exit_code, 0);
  EXPECT_EQ(queue(words).exit_code, 0);  // a repeat
  EXPECT_EQ(item(id, "state"), "done");
  EXPECT_EQ(item(id, "result"), "the result");
  EXPECT_EQ(queue({"claim", "builds"}).out, "a:b\n");
  EXPECT_EQ(queue({"claim", "builds"}).out, "c\n");
  EXPECT_EQ(queue({"claim", "builds"}).exit_code, 3);
}

TEST_F(QueueCommand, ACheckpointIsForTheNextClaimant) {
  const std::string id = put("x", {"--requeue", "always"});
  ASSERT_EQ(queue({"claim", "builds", "--ttl", "1s"}).exit_code, 0);
  const std::string file = stint_.dir().file("checkpoint.txt");
  write_text(file, "page 40 of 200");
  ASSERT_EQ(queue({"checkpoint", id, "page 40", "--epoch", "1", "--data", file}).exit_code, 0);
  Finished next;
  ASSERT_TRUE(wait_until([&] {
    next = queue({"claim", "builds", "--json"});
    return next.exit_code == 0;
  }));
  EXPECT_EQ(json_field(next.out, "checkpoint"), "page 40 of 200");
  EXPECT_EQ(json_field(next.out, "progress"), "page 40");
  EXPECT_EQ(json_field(next.out, "reason"), "expired");
}

TEST_F(QueueCommand, TheOperatorsVerbs) {
  const std::string id = put("x");
  EXPECT_EQ(queue({"park", id}).exit_code, 2);  // without a why
  EXPECT_EQ(queue({"park", id, "--why", "look at it", "--by", "eve"}).exit_code, 0);
  EXPECT_EQ(item(id, "state"), "parked");
  EXPECT_EQ(item(id, "by"), "eve");
  EXPECT_EQ(item(id, "epoch"), "1");
  EXPECT_EQ(queue({"claim", "builds"}).exit_code, 3);
  EXPECT_EQ(queue({"requeue", id, "--why", "fine"}).exit_code, 0);
  EXPECT_EQ(queue({"reassign", id, "--why", "his", "--to", "bob"}).exit_code, 0);
  EXPECT_EQ(queue({"claim", "builds", "--owner", "ann"}).exit_code, 3);
  EXPECT_EQ(queue({"claim", "builds", "--owner", "bob"}).exit_code, 0);
  const std::string epoch = item(id, "epoch");
  EXPECT_EQ(queue({"cancel", id, "--why", "no", "--epoch", epoch}).exit_code, 0);
  EXPECT_EQ(queue({"requeue", id, "--why", "w"}).exit_code, 12);
  EXPECT_EQ(queue({"replay", id, "--why", "after all"}).exit_code, 0);
  EXPECT_EQ(queue({"drop", id, "--why", "done with it"}).exit_code, 0);
  EXPECT_EQ(queue({"show", id}).exit_code, 3);
  EXPECT_EQ(stint_.events({"item_parked", "eve", "look at it"}), 1);
}

// Bad input: a clear error, nothing changed.
TEST_F(QueueCommand, BadInputIsTwoAndChangesNothing) {
  const std::string id = put("x");
  ASSERT_EQ(queue({"claim", "builds"}).exit_code, 0);
  const std::string before = queue({"ls", "builds", "--json"}).out;
  const std::string huge = stint_.dir().file("huge");
  write_text(huge, std::string(65'537, 'x'));
  const std::string other = "other" + id.substr(id.rfind('-'));
  const std::vector<std::vector<std::string>> wrong = {
      {"put", "nowhere", "x"},
      {"put", "builds", "--file", huge},
      {"put", "builds", "{not json", "--check-json"},
      {"put", "bad/name", "x", "--create"},
      {"put", "builds", "x", "--priority", "101"},
      {"put", "builds", "x", "--max-attempts", "0"},
      {"put", "builds", "x", "--requeue", "sometimes"},
      {"claim", "nowhere"},
      {"claim", "builds", "--ttl", "5"},
      {"put", "builds", "x", "--then", "builds:y"},
      {"claim", "builds", "--limit", "3"},
      {"claim", "builds", "--ttl", "0s"},
      {"claim", "builds", "--ttl", "50ms"},
      {"put", "builds", "x", "--claim-ttl", "1ms"},
      {"put", "builds", "--file", "/no/such/file"},
      {"complete", id},
      {"complete", id, "--epoch", "0"},
      {"complete", id, "--epoch", "-1"},
      {"complete", id, "--epoch", "1", "--result", huge},
      {"complete", id, "--epoch", "1", "--then", "builds"},
      {"complete", id, "--epoch", "1", "--then", "nowhere:x"},
      {"complete", id, "--epoch", "1", "--queue", "other"},
      {"complete", "rubbish", "--epoch", "1"},
      {"checkpoint", id, "two\nlines", "--epoch", "1"},
      {"park", id, "--why", "w", "--epoch", "0"},
      {"fly", id}};
  for (const auto& words : wrong) {
    const Finished done = queue(words);
    EXPECT_EQ(done.exit_code, 2) << words[0] << " " << words[1] << ": " << done.out << done.err;
    EXPECT_FALSE(done.err.empty());
  }
  EXPECT_EQ(queue({"complete", other, "--epoch", "1"}).exit_code, 12);
  const std::string after = queue({"ls", "builds", "--json"}).out;
  EXPECT_EQ(json_field(after, "state"), json_field(before, "state"));
  EXPECT_EQ(json_field(after, "epoch"), json_field(before, "epoch"));
  EXPECT_EQ(count_lines(queue({"ls", "builds"}).out), 2);
}

TEST_F(QueueCommand, ListsQueuesAndItems) {
  put("a");
  put("b");
  ASSERT_EQ(queue({"claim", "builds"}).exit_code, 0);
  const std::string queues = queue({"ls", "--json"}).out;
  EXPECT_EQ(json_field(queues, "waiting"), "1");
  EXPECT_EQ(json_field(queues, "claimed"), "1");
  EXPECT_EQ(count_lines(queue({"ls", "builds", "--state", "claimed"}).out), 2);
  EXPECT_EQ(count_lines(queue({"ls", "builds", "--state", "done"}).out), 1);
}

}  // namespace
}  // namespace stint::test
