#include "store/do/do_store.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "store/do/wire.h"
#include "store/steps.h"

namespace stint::store::durable {
namespace {

Capabilities capabilities_of() {
  return {.name = "do",
          .clock = Capabilities::ClockKind::Wall,
          .smallest_ttl = Millis(100),
          .ttl_grain = Millis(1),
          .step = Millis(50),
          .durable = true,
          .may_lose =
              "nothing that it acknowledged; an operator's point-in-time recovery takes "
              "the store back"};
}

}  // namespace

DoStore::DoStore(Settings settings, const OpenRequest& request, const Clock& clock)
    : clock_(clock),
      timeout_(request.timeout),
      may_create_(request.may_create),
      asker_(std::move(settings), clock),
      capabilities_(capabilities_of()) {}

Result<std::unique_ptr<DoStore>> DoStore::open(const OpenRequest& request, const Clock& clock) {
  auto settings = settings_of(request);
  if (!settings) return settings.error();
  return std::unique_ptr<DoStore>(new DoStore(std::move(*settings), request, clock));
}

Result<boost::json::object> DoStore::ask(std::string_view route, const Result<std::string>& body,
                                         Twice twice) const {
  if (!body) return body.error();
  return asker_.ask(route, *body, Deadline(clock_, timeout_), twice);
}

Result<Reading> DoStore::read(const std::vector<std::string>& keys) {
  if (keys.empty()) return Reading{};
  auto answer = ask("read", read_body(keys, may_create_), Twice::Harmless);
  if (!answer) return answer.error();
  return parse_reading(*answer, keys);
}

Result<Reading> DoStore::scan(const ScanRange& range) {
  Reading out;
  ScanRange rest = range;
  while (rest.limit > 0) {
    auto answer = ask("scan", scan_body(rest, may_create_), Twice::Harmless);
    if (!answer) return answer.error();
    auto page = parse_page(*answer);
    if (!page) return page.error();
    std::vector<Entry>& found = page->reading.entries;
    if (found.size() > rest.limit) found.resize(rest.limit);
    rest.limit -= found.size();
    if (!found.empty()) rest.after = found.back().key;
    const bool over = !page->more || found.empty();
    std::ranges::move(found, std::back_inserter(out.entries));
    out.store_wall = page->reading.store_wall;
    out.store_time = page->reading.store_time;
    if (over) break;
  }
  return out;
}

Result<CommitAnswer> DoStore::commit(const std::vector<Step>& steps, Sync /*sync*/) {
  if (auto ok = check_sizes(steps); !ok) return ok.error();
  for (const Step& step : steps) {
    CHECK(step.timer != Step::TimerOp::Extend || step.demand == TimerState::Running,
          "Extend needs a running timer");
  }
  auto answer = ask("commit", commit_body(steps, may_create_), Twice::Never);
  if (!answer) return answer.error();
  auto done = parse_commit(*answer, steps);
  // Carried out or not: such an answer does not tell.
  if (!done) return Error{Code::UnknownOutcome, done.error().message};
  return done;
}

Result<std::unique_ptr<Watch>> DoStore::watch(std::string_view key) {
  auto body = watch_body(key, may_create_);
  if (!body) return body.error();
  return asker_.watch(*body, timeout_);
}

Result<std::uint64_t> DoStore::appended(const std::string& prefix) {
  auto answer = ask("scan", count_body(prefix, may_create_), Twice::Harmless);
  if (!answer) return answer.error();
  return parse_count(*answer);
}

Result<std::uint64_t> DoStore::revision() {
  auto answer = ask("read", read_body({}, may_create_), Twice::Harmless);
  if (!answer) return answer.error();
  auto stamp = parse_stamp(*answer);
  if (!stamp) return stamp.error();
  return stamp->revision;
}

// The doctor itself looks at clock, latency and durability.
Result<std::vector<Finding>> DoStore::examine() {
  auto answer = ask("read", read_body({}, may_create_), Twice::Harmless);
  if (!answer) return answer.error();
  auto about = parse_about(*answer);
  if (!about) return about.error();
  using Level = Finding::Level;
  std::vector<Finding> out = {
      {Level::Ok, "version", cat(about->worker, ", protocol ", kProtocol)},
      {Level::Ok, "region",
       about->colo.empty() ? std::string("the server does not tell")
                           : cat("asked through Cloudflare's ", about->colo,
                                 "; the object stays where it was first asked for")}};
  if (about->ahead_ms != 0) {
    out.push_back({Level::Warn, "clock",
                   cat("the server's clock was set back, by ", about->ahead_ms,
                       " ms in all: the store goes on from where it was")});
  }
  return out;
}

}  // namespace stint::store::durable
