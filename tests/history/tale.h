// Histories by hand, for the tests of the checker.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/support/history_checker.h"

namespace stint::test {

// Writes a history by hand. Times in ms of the store's clock; every operation ends before the next
// begins unless begin() and end() are used.
class Tale {
 public:
  HistoryEvent begin(std::string_view verb, std::uint64_t token = 0) {
    HistoryEvent event;
    event.op = std::to_string(++ops_);
    event.client = "c";
    event.verb = verb;
    event.resource = resource;
    event.token = Token(token);
    lines.push_back(event);
    return event;
  }
  void end(HistoryEvent event, Phase phase, std::optional<int> at_ms) {
    event.phase = phase;
    if (at_ms) event.store_time = Millis(*at_ms);
    lines.push_back(std::move(event));
  }
  void granted(std::uint64_t token, int at_ms, int ttl_ms = 100) {
    HistoryEvent event = begin(verbs::kAcquire);
    event.token = Token(token);
    event.ttl = Millis(ttl_ms);
    end(event, Phase::Ok, at_ms);
  }
  void refused(std::uint64_t holder) {
    HistoryEvent event = begin(verbs::kAcquire);
    event.holder = Token(holder);
    event.cause = "held";
    end(event, Phase::Fail, std::nullopt);
  }
  void renewed(std::uint64_t token, int at_ms, int ttl_ms = 100) {
    HistoryEvent event = begin(verbs::kRenew, token);
    event.ttl = Millis(ttl_ms);
    end(event, Phase::Ok, at_ms);
  }
  void lost(std::string_view verb, std::uint64_t token, std::string cause,
            std::optional<int> at_ms = {}) {
    HistoryEvent event = begin(verb, token);
    event.cause = std::move(cause);
    end(event, Phase::Fail, at_ms);
  }
  void released(std::uint64_t token, int at_ms) {
    end(begin(verbs::kRelease, token), Phase::Ok, at_ms);
  }
  void unknown(std::string_view verb, std::uint64_t token = 0) {
    end(begin(verb, token), Phase::Info, std::nullopt);
  }
  void moved(std::string_view verb, std::uint64_t from, std::uint64_t to, int at_ms) {
    HistoryEvent event = begin(verb);
    event.ends = Token(from);
    event.token = Token(to);
    event.ttl = Millis(100);
    end(event, Phase::Ok, at_ms);
  }
  // At a target "file" unless told otherwise; every one that is accepted has a key and a version.
  HistoryEvent at_target(std::string_view verb, std::uint64_t token, Phase phase,
                         std::uint64_t version = 0, std::string key = "") {
    HistoryEvent event = begin(verb, token);
    event.target = target;
    event.client = client;
    event.version = version;
    event.key = std::move(key);
    end(event, phase, std::nullopt);
    return event;
  }
  void sealed(std::uint64_t token) { at_target(verbs::kSeal, token, Phase::Ok); }
  void read(std::uint64_t token, std::uint64_t version, std::string key = "") {
    at_target(verbs::kRead, token, Phase::Ok, version, std::move(key));
  }
  void wrote(std::uint64_t token, std::uint64_t version, std::string key) {
    at_target(verbs::kWrite, token, Phase::Ok, version, std::move(key));
  }
  void fenced(std::uint64_t token, std::string key) {
    HistoryEvent event = begin(verbs::kWrite, token);
    event.target = target;
    event.client = client;
    event.key = std::move(key);
    event.cause = "stale";
    end(event, Phase::Fail, std::nullopt);
  }
  void landed(std::uint64_t token, std::uint64_t version, std::string key) {
    at_target(verbs::kLanded, token, Phase::Ok, version, std::move(key));
  }
  void fence(std::uint64_t token) { at_target(verbs::kFence, token, Phase::Ok); }
  // Of a queue or a schedule.
  void named(std::string_view verb, std::string key, std::uint64_t version,
             std::string cause = "") {
    HistoryEvent event = begin(verb);
    event.key = std::move(key);
    event.version = version;
    event.cause = std::move(cause);
    end(event, Phase::Ok, std::nullopt);
  }
  void crash() { end(begin(verbs::kCrash), Phase::Ok, std::nullopt); }

  std::set<int> broken(const CheckOptions& options = {}) const {
    const HistoryReport report = check_history(lines, options);
    std::set<int> out;
    for (const Violation& violation : report.violations) {
      out.insert(violation.invariant);
      EXPECT_FALSE(violation.operations.empty()) << report.text();
    }
    return out;
  }

  std::vector<HistoryEvent> lines;
  std::string resource = "r";
  std::string target = "file";
  std::string client = "c";

 private:
  int ops_ = 0;
};

using Names = std::set<int>;

}  // namespace stint::test
