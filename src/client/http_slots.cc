// Jobs and slots over the link.
//
// Each step of a slot is the same by its lease: it is asked again when its answer was lost, and
// "gone" after a lost answer proves nothing: it stays unknown. What is asked for by hand goes with
// an idempotency key.
#include <algorithm>
#include <iterator>

#include "api/slots_json.h"
#include "api/wire.h"
#include "base/json_text.h"
#include "base/text.h"
#include "client/faces.h"

namespace stint::client {
namespace {

constexpr std::size_t kMostAsksAtOnce = 100;

Error odd_answer(const Error& error) {
  return unavailable(cat("the server's answer: ", error.message));
}
Error odd_word(const Error& error) {
  return {Code::UnknownOutcome, cat("the server's answer: ", error.message)};
}

bool says_gone(const Link::Reply& reply) {
  auto told = api::parse_error(reply.body);
  return reply.status == 410 && told && told->error.code == Code::Lost;
}

Result<api::EndAnswer> end_of(const Result<Link::Reply>& reply) {
  if (!reply) return reply.error();
  if (says_gone(*reply)) return api::EndAnswer{};
  if (reply->status != 200) return Link::error_of(*reply);
  auto end = api::parse_end(reply->json);
  if (!end) return odd_word(end.error());
  return end;
}

std::string grip_json(const api::Grip& grip) {
  return cat("\"resource\":", json_quoted(grip.resource.text()), ",\"token\":", grip.token.number(),
             ",\"claim\":\"", grip.claim.hex(), "\"");
}

}  // namespace

Result<WallTime> HttpSlots::now() {
  auto reply = link_.get("/v1/jobs/now");
  if (!reply) return reply.error();
  if (reply->status != 200) return Link::error_of(*reply);
  JsonFields in(reply->json);
  in.require("now_ms");
  const auto now = in.moment("now_ms");
  own_clock_ = in.flag("own_clock");
  if (auto fine = in.done(); !fine) return odd_answer(fine.error());
  return now.value_or(WallTime{});
}

std::vector<Result<api::Decided>> HttpSlots::decide(const std::vector<api::DecideAsk>& asks,
                                                    const std::string& scheduler) {
  std::vector<Result<api::Decided>> out;
  for (std::size_t from = 0; from < asks.size(); from += kMostAsksAtOnce) {
    const std::size_t count = std::min(kMostAsksAtOnce, asks.size() - from);
    std::string body;
    for (std::size_t i = from; i < from + count; ++i) {
      body += cat(body.empty() ? "" : ",", "{\"rule\":", api::to_json(*asks[i].rule),
                  asks[i].held_back ? ",\"held_back\":true}" : "}");
    }
    auto reply =
        link_.post("/v1/jobs/decide",
                   cat("{\"scheduler\":", json_quoted(scheduler), ",\"asks\":[", body, "]}"),
                   Link::Again::Leave);
    auto answers = Link::each_of<api::Decided>(reply, count, odd_word(invalid("not one of many")),
                                               [](const JsonValue& one) -> Result<api::Decided> {
                                                 if (auto told = api::parse_error(one))
                                                   return told->error;
                                                 auto decided = api::parse_decided(one);
                                                 if (!decided) return odd_word(decided.error());
                                                 return decided;
                                               });
    std::ranges::move(answers, std::back_inserter(out));
  }
  return out;
}

Status HttpSlots::keep(const std::string& job) {
  auto reply =
      link_.post("/v1/jobs/keep", cat("{\"job\":", json_quoted(job), "}"), Link::Again::Leave);
  if (!reply) return reply.error();
  if (reply->status != 200) return Link::error_of(*reply);
  return {};
}

Result<std::vector<std::string>> HttpSlots::open_jobs() {
  auto reply = link_.get("/v1/jobs/open");
  if (!reply) return reply.error();
  if (reply->status != 200) return Link::error_of(*reply);
  JsonFields in(reply->json);
  in.require("jobs");
  auto names = in.texts("jobs");
  if (auto fine = in.done(); !fine) return odd_answer(fine.error());
  return names;
}

Result<std::vector<api::NamedJob>> HttpSlots::jobs() {
  auto reply = link_.get("/v1/jobs");
  if (!reply) return reply.error();
  if (reply->status != 200) return Link::error_of(*reply);
  const JsonValue* list = JsonFields(reply->json).find("jobs");
  if (list == nullptr || list->if_list() == nullptr) return odd_answer(invalid("no jobs"));
  std::vector<api::NamedJob> out;
  for (const JsonValue& one : *list->if_list()) {
    auto job = api::parse_job(one);
    if (!job) return odd_answer(job.error());
    out.push_back({JsonFields(one).text("job"), std::move(*job)});
  }
  return out;
}

Result<api::StepAnswer> HttpSlots::step(const std::string& path, const std::string& body) {
  auto reply = link_.post(path, body, Link::Again::Leave);
  if (!reply) return reply.error();
  if (says_gone(*reply)) return api::StepAnswer::Gone;
  if (reply->status != 200) return Link::error_of(*reply);
  JsonFields in(reply->json);
  if (!in.flag("done") || !in.done()) return odd_word(invalid("it does not say 'done'"));
  return api::StepAnswer::Done;
}

Result<api::StepAnswer> HttpSlots::claim(const api::SlotProof& proof) {
  return step("/v1/jobs/claim", api::to_json(proof));
}
Result<api::StepAnswer> HttpSlots::start(const api::SlotProof& proof) {
  return step("/v1/jobs/start", api::to_json(proof));
}
Result<api::StepAnswer> HttpSlots::running(const api::SlotProof& proof) {
  return step("/v1/jobs/running", api::to_json(proof));
}
Result<api::StepAnswer> HttpSlots::hand_back(const api::SlotProof& proof) {
  return step("/v1/jobs/hand_back", api::to_json(proof));
}

Result<api::EndAnswer> HttpSlots::end(const api::SlotProof& proof, const core::SlotEnd& end,
                                      const core::JobRule& rule) {
  std::string further = cat(",\"state\":\"", core::word(end.state), "\"");
  if (end.exit_code) further += cat(",\"exit_code\":", *end.exit_code);
  if (!end.cause.empty()) further += cat(",\"cause\":", json_quoted(end.cause));
  further += cat(",\"rule\":", api::to_json(rule));
  return end_of(link_.post("/v1/jobs/end", api::to_json(proof, further), Link::Again::Yes));
}

Result<api::EndAnswer> HttpSlots::skip(const api::SlotSkip& skip) {
  return end_of(link_.post("/v1/jobs/skip", api::to_json(skip), Link::Again::Yes));
}

Result<api::SlotAdded> HttpSlots::add(const core::JobRule& rule, std::optional<core::Slot> slot,
                                      const std::string& scheduler) {
  std::string body =
      cat("{\"rule\":", api::to_json(rule), ",\"scheduler\":", json_quoted(scheduler));
  if (slot) body += cat(",\"slot\":", api::to_json(*slot));
  auto reply = link_.post_once("/v1/jobs/add", body + "}");
  if (!reply) return reply.error();
  if (reply->status != 200) return Link::error_of(*reply);
  auto added = api::parse_added(reply->json);
  if (!added) return odd_word(added.error());
  return added;
}

Status HttpSlots::change(const std::string& path, const core::JobRule& rule,
                         const std::string& by) {
  auto reply =
      link_.post(path, cat("{\"rule\":", api::to_json(rule), ",\"by\":", json_quoted(by), "}"),
                 Link::Again::Yes);
  if (!reply) return reply.error();
  if (reply->status != 200) return Link::error_of(*reply);
  return {};
}

Status HttpSlots::pause(const core::JobRule& rule, const std::string& by) {
  return change("/v1/jobs/pause", rule, by);
}
Status HttpSlots::resume(const core::JobRule& rule, const std::string& by) {
  return change("/v1/jobs/resume", rule, by);
}

Result<api::JobHistory> HttpSlots::history(const std::string& job, std::size_t limit) {
  auto reply = link_.get("/v1/jobs/history", {{"job", job}, {"limit", cat(limit)}});
  if (!reply) return reply.error();
  if (reply->status != 200) return Link::error_of(*reply);
  auto history = api::parse_history(reply->json);
  if (!history) return odd_answer(history.error());
  return history;
}

Result<api::OnceRecord> HttpSlots::once(const std::string& key) {
  auto reply = link_.get("/v1/once", {{"key", key}});
  if (!reply) return reply.error();
  if (reply->status != 200) return Link::error_of(*reply);
  auto record = api::parse_once_record(reply->json);
  if (!record) return odd_answer(record.error());
  return record;
}

Result<api::StepAnswer> HttpSlots::once_start(const std::string& key, const api::Grip& grip,
                                              const Owner& owner) {
  return step("/v1/once/start", cat("{\"key\":", json_quoted(key), ",", grip_json(grip),
                                    ",\"owner\":", json_quoted(owner.text()), "}"));
}

Result<api::StepAnswer> HttpSlots::once_end(const std::string& key, const api::Grip& grip,
                                            int exit_code) {
  return step("/v1/once/end", cat("{\"key\":", json_quoted(key), ",", grip_json(grip),
                                  ",\"exit_code\":", exit_code, "}"));
}

}  // namespace stint::client
