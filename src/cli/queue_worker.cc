// stint queue put, claim, renew, complete, fail, release, checkpoint.
#include <unistd.h>

#include <cerrno>

#include "api/queue_json.h"
#include "app/json_check.h"
#include "base/text.h"
#include "cli/exit_codes.h"
#include "cli/queue.h"
#include "os/files.h"

namespace stint::cli {
namespace {

// "1", "-5"; nothing else.
std::optional<int> whole_number(std::string_view text) {
  const bool negative = text.starts_with('-');
  const auto digits = parse_digits(negative ? text.substr(1) : text);
  if (!digits || *digits > 1'000'000) return std::nullopt;
  const int number = static_cast<int>(*digits);
  return negative ? -number : number;
}

Result<std::string> payload_of(Session& session) {
  const auto& operands = session.words().operands();
  const auto file = session.words().value("--file");
  if (file && operands.size() > 2) return invalid("a payload, or --file: not both");
  if (file) return read_content("a payload", *file);
  if (operands.size() < 3) return std::string();
  if (operands[2] == "-") return read_content("a payload", "-");
  return operands[2];
}

}  // namespace

Result<std::string> read_content(std::string_view what, const std::string& path) {
  auto bytes = path == "-" ? os::read_descriptor(STDIN_FILENO, api::kMostContentBytes + 1)
                           : os::read_file(path, std::size_t{16} << 20U);
  // A file of the user's: not the store's trouble.
  if (!bytes) return invalid(cat("cannot read ", what, ": ", bytes.error().message));
  if (auto ok = api::check_data(what, *bytes); !ok) return ok.error();
  return bytes;
}

Result<std::optional<core::ItemLimits>> given_limits(Session& session, core::ItemLimits limits) {
  const Words& words = session.words();
  bool given = false;
  if (const auto text = words.value("--max-attempts")) {
    const auto number = parse_digits(*text);
    if (!number || *number > 1'000'000) return invalid("--max-attempts is a number from 1 to 1000");
    limits.max_attempts = static_cast<std::uint32_t>(*number);
    given = true;
  }
  if (const auto text = words.value("--requeue")) {
    const auto requeue = core::parse_requeue(*text);
    if (!requeue) return invalid("--requeue is never, if-no-progress or always");
    limits.requeue = *requeue;
    given = true;
  }
  for (auto [option, target] :
       {std::pair{"--claim-ttl", &limits.claim_ttl},
        std::pair{"--progress-timeout", &limits.progress_timeout},
        std::pair{"--backoff", &limits.backoff}, std::pair{"--backoff-max", &limits.backoff_max}}) {
    if (!words.has(option)) continue;
    auto length = session.duration(option, std::nullopt);
    if (!length) return length.error();
    *target = *length;
    given = true;
  }
  if (auto ok = core::check_new_limits(limits); !ok) return ok.error();
  if (!given) return std::optional<core::ItemLimits>();
  return std::optional<core::ItemLimits>(limits);
}

int queue_put(Session& session) {
  const Words& words = session.words();
  auto name = core::QueueName::parse(words.operands()[1]);
  if (!name) return session.fail(name.error());
  auto declared = declared_queues(session);
  if (!declared) return session.fail(declared.error());
  auto payload = payload_of(session);
  if (!payload) return session.fail(payload.error());
  api::PutRequest request{.queue = *name,
                          .payload = std::move(*payload),
                          .priority = 0,
                          .delay = {},
                          .unique = words.value("--unique").value_or(""),
                          .labels = words.values("--label"),
                          .by = {},
                          .limits = {},
                          .create = words.has("--create")};
  if (words.has("--check-json")) {
    if (auto ok = app::check_json(request.payload); !ok) return session.fail(ok.error());
  }
  if (const auto text = words.value("--priority")) {
    const auto number = whole_number(*text);
    if (!number) return session.fail(invalid("--priority is a number from -100 to 100"));
    request.priority = *number;
  }
  if (words.has("--not-before")) {
    auto delay = session.duration("--not-before", std::nullopt);
    if (!delay) return session.fail(delay.error());
    request.delay = *delay;
  }
  auto owner = session.owner();
  if (!owner) return session.fail(owner.error());
  request.by = owner->text();
  if (auto ok = api::check_put(request); !ok) return session.fail(ok.error());
  auto queue = open_declared_queue(session, *name, *declared);
  if (!queue) return session.fail(queue.error());
  // What is not given is the queue's.
  auto present = (*queue)->config(*name);
  auto limits = given_limits(session, present ? present->limits : core::ItemLimits{});
  if (!limits) return session.fail(limits.error());
  request.limits = *limits;
  auto put = (*queue)->put(request);
  if (!put) return session.fail(put.error());
  if (put->existed) session.say("an item has this unique key already");
  session.did(cat("the item is ", put->id.text()));
  session.print(session.json() ? api::to_json(*put) : put->id.text());
  return kDone;
}

namespace {

// Zero: none was given.
Result<Millis> claim_ttl(Session& session) {
  auto ttl = session.duration("--ttl", Millis(0));
  if (!ttl || !session.words().has("--ttl")) return ttl;
  if (auto ok = core::check_claim_ttl(*ttl); !ok) return ok.error();
  return ttl;
}

}  // namespace

int queue_claim(Session& session) {
  auto name = core::QueueName::parse(session.words().operands()[1]);
  if (!name) return session.fail(name.error());
  auto owner = session.owner();
  if (!owner) return session.fail(owner.error());
  auto ttl = claim_ttl(session);
  if (!ttl) return session.fail(ttl.error());
  auto queue = open_queue(session);
  if (!queue) return session.fail(queue.error());
  auto answer = (*queue)->claim({.queue = *name,
                                 .owner = *owner,
                                 .claim = Claim::make(session.random()),
                                 .ttl = *ttl,
                                 .start = session.words().has("--started"),
                                 .reports = false});
  if (!answer) return session.fail(answer.error());
  if (const auto* empty = std::get_if<api::EmptyQueue>(&*answer)) {
    return session.nothing(
        cat("nothing to claim in ", quoted(name->text()),
            empty->next_in ? cat("; there may be in ", rough_duration(*empty->next_in)) : ""));
  }
  const auto& claimed = std::get<api::ClaimedItem>(*answer);
  const std::string words =
      cat("claimed ", claimed.item.id.text(), " with epoch ", claimed.item.item.epoch.number(),
          " for ", rough_duration(claimed.granted_ttl));
  session.did(words);
  session.say(words);
  session.print(session.json() ? api::to_json(claimed.item) : claimed.item.payload.value_or(""));
  return kDone;
}

int queue_renew(Session& session) {
  auto ref = item_ref(session);
  if (!ref) return session.fail(ref.error());
  auto ttl = claim_ttl(session);
  if (!ttl) return session.fail(ttl.error());
  auto queue = open_queue(session);
  if (!queue) return session.fail(queue.error());
  return tell(session, (*queue)->renew(*ref, *ttl), ref->epoch);
}

int queue_complete(Session& session) {
  auto ref = item_ref(session);
  if (!ref) return session.fail(ref.error());
  api::Completion completion{.ref = *ref, .result = std::nullopt, .then = {}};
  if (const auto path = session.words().value("--result")) {
    auto bytes = read_content("a result", *path);
    if (!bytes) return session.fail(bytes.error());
    completion.result = std::move(*bytes);
  }
  for (const std::string& text : session.words().values("--then")) {
    const std::size_t colon = text.find(':');
    if (colon == std::string::npos) {
      return session.fail(invalid(cat("--then is QUEUE:PAYLOAD; this is ", quoted(text))));
    }
    auto name = core::QueueName::parse(text.substr(0, colon));
    if (!name) return session.fail(name.error());
    completion.then.push_back({*name, text.substr(colon + 1)});
  }
  if (auto ok = api::check_completion(completion); !ok) return session.fail(ok.error());
  auto queue = open_queue(session);
  if (!queue) return session.fail(queue.error());
  return tell(session, (*queue)->complete(completion), ref->epoch);
}

int queue_fail(Session& session) {
  auto ref = item_ref(session);
  if (!ref) return session.fail(ref.error());
  std::optional<Millis> later;
  if (session.words().has("--later")) {
    auto length = session.duration("--later", std::nullopt);
    if (!length) return session.fail(length.error());
    later = *length;
  }
  auto queue = open_queue(session);
  if (!queue) return session.fail(queue.error());
  return tell(session, (*queue)->fail(*ref, session.words().value("--why").value_or(""), later),
              ref->epoch);
}

int queue_release(Session& session) {
  auto ref = item_ref(session);
  if (!ref) return session.fail(ref.error());
  auto queue = open_queue(session);
  if (!queue) return session.fail(queue.error());
  return tell(session, (*queue)->release(*ref), ref->epoch);
}

int queue_checkpoint(Session& session) {
  auto ref = item_ref(session);
  if (!ref) return session.fail(ref.error());
  const auto& operands = session.words().operands();
  std::optional<std::string> data;
  if (const auto path = session.words().value("--data")) {
    auto bytes = read_content("a checkpoint", *path);
    if (!bytes) return session.fail(bytes.error());
    data = std::move(*bytes);
  }
  auto queue = open_queue(session);
  if (!queue) return session.fail(queue.error());
  return tell(session, (*queue)->checkpoint(*ref, operands.size() > 2 ? operands[2] : "", data),
              ref->epoch);
}

}  // namespace stint::cli
