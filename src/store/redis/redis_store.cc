#include "store/redis/redis_store.h"

#include <algorithm>

#include "base/text.h"
#include "os/clock.h"
#include "os/random.h"
#include "store/redis/faults.h"
#include "store/redis/hub.h"
#include "store/redis/link.h"
#include "store/redis/pipeline.h"
#include "store/redis/scripts.h"
#include "store/steps.h"

namespace stint::store {
namespace {

using redis::Reply;

constexpr std::string_view kTailRecord = "store/tail";
// One page of a scan: a bound for the time that the server is busy with it.
constexpr std::size_t kPage = 500;
// A hundred years, so that the end of a timer stays below 2^53 microseconds.
constexpr Millis kLongestTtl{3'155'760'000'000};
// A commit meets another run of the server only when that was started anew in between.
constexpr int kMostRuns = 3;

Status check_steps(const std::vector<Step>& steps) {
  if (auto ok = check_sizes(steps); !ok) return ok;
  for (const Step& step : steps) {
    if (step.ttl < Millis(0) || step.ttl > kLongestTtl) {
      return invalid(cat("the timer of ", quoted(step.key), " is longer than a hundred years"));
    }
  }
  return {};
}

}  // namespace

RedisStore::RedisStore(redis::Options options)
    : options_(std::move(options)),
      records_(options_.records_key()),
      index_(options_.index_key()),
      channels_(options_.channel("")) {}

RedisStore::~RedisStore() = default;

Result<std::unique_ptr<RedisStore>> RedisStore::open(const OpenRequest& request) {
  auto options = redis::read_options(request);
  if (!options) return options.error();
  std::unique_ptr<RedisStore> store(new RedisStore(std::move(*options)));
  if (auto ok = store->begin(); !ok) return ok.error();
  return store;
}

Status RedisStore::begin() {
  capabilities_ = {.name = "redis",
                   .clock = Capabilities::ClockKind::Wall,
                   .smallest_ttl = Millis(100),
                   .ttl_grain = Millis(1),
                   .step = Millis(1),
                   .failover_restarts_timers = false,
                   .durable = false,
                   .relaxed_renewals = false,
                   .may_lose = {},
                   .tail_record = std::string(kTailRecord)};
  pipeline_ = std::make_unique<redis::Pipeline>(options_,
                                                [this](MonoTime until) { return connect(until); });
  hub_ = std::make_unique<redis::Hub>(options_);
  // The first question connects; who may not be here, or finds no store, learns it from that.
  if (auto answer = revision(); !answer) return answer.error();
  capabilities_.durable = facts_.durable();
  capabilities_.failover_loses = facts_.durable() && !facts_.keeps_tail();
  capabilities_.may_lose = facts_.may_lose();
  return {};
}

Result<std::unique_ptr<redis::Link>> RedisStore::connect(MonoTime until) {
  auto link = redis::Link::open(options_, until);
  if (!link) return link.error();
  auto facts = (*link)->facts(until);
  if (!facts) return facts.error();
  if (auto ok = redis::check_usable(*facts, options_.where()); !ok) return ok.error();
  facts->wait = options_.wait;
  if (facts->online < options_.wait) {
    return unavailable(cat("the Redis at ", options_.where(), " has ", facts->online,
                           " replicas, and wait=", options_.wait, " wants more"));
  }
  if (auto ok = enter(**link, *facts, until); !ok) return ok.error();
  {
    const MutexLock lock(mutex_);
    const bool moved = !run_id_.empty() && run_id_ != facts->run_id;
    run_id_ = facts->run_id;
    if (!moved) return link;
  }
  // The name leads to another server now: connections to the former one are not to be used.
  pipeline_->forget_link();
  return link;
}

Result<std::vector<Finding>> RedisStore::examine() {
  const bool certificate = options_.tls && !options_.certificates.cert.empty();
  auto out = facts_.findings();
  out.push_back(facts_.rights(
      {.user = options_.user,
       .anybody = options_.password.empty() && options_.socket.empty() && !certificate}));
  return out;
}

// Finds the store at this server, or makes it; notices that the server was started anew.
Status RedisStore::enter(redis::Link& link, const RedisFacts& facts, MonoTime until) {
  const bool first = id_.empty();
  const std::string fresh = first && options_.may_create ? os::SystemRandom().id_hex() : "";
  const std::string trial = options_.channel("");
  auto reply = link.run(
      redis::register_script(),
      {records_, index_, fresh, facts.run_id, facts.keeps_tail() ? "1" : "0", kTailRecord, trial},
      until);
  if (!reply) return reply.error();
  if (!reply->is(Reply::Kind::Array) || reply->items.size() != 2) {
    return redis::damaged("it does not say whose it is");
  }
  const std::string& word = reply->items[0].text;
  const std::string& what = reply->items[1].text;
  if (word == "none") {
    return unavailable(
        first ? "there is no Stint store at this place, and this client may not make one"
              : "the Redis store was emptied under this client");
  }
  if (word == "foreign") {
    return unavailable(cat("the Redis key ", quoted(what), " at ", options_.where(),
                           " belongs to somebody else; choose another ?prefix="));
  }
  if (word == "denied") {
    return Error{Code::Denied, cat("the Redis at ", options_.where(), " does not permit this user ",
                                   printable(what))};
  }
  if (word != "made" && word != "found" && word != "lost") {
    return unavailable(cat("the Redis store at ", options_.where(),
                           " is in a form that this stint "
                           "does not know: ",
                           quoted(what)));
  }
  if (!first) return check_id(reply->items[1]);
  id_ = what;
  facts_ = facts;
  opening_.created = word == "made";
  return {};
}

Status RedisStore::check_id(const Reply& id) const {
  if (id.is(Reply::Kind::Bulk) && id.text == id_) return {};
  return unavailable(id.is(Reply::Kind::Nil)
                         ? "the Redis store was emptied under this client"
                         : "the Redis store was replaced by another one under this client");
}

std::string RedisStore::run_id() const {
  const MutexLock lock(mutex_);
  return run_id_;
}

// A question that changes nothing may be asked twice: a connection that was cut is no answer.
Result<redis::Answer> RedisStore::ask_again(const redis::Question& question) {
  const MonoTime begun = os::system_clock().mono();
  const MonoTime until = begun + options_.timeout;
  auto answer = pipeline_->ask(question, until);
  const bool soon = os::system_clock().mono() - begun < options_.timeout / 2;
  if (answer || answer.error().code != Code::Unavailable || !soon) return answer;
  return pipeline_->ask(question, until);
}

Result<RedisStore::Ran> RedisStore::run_commit(const std::vector<std::string_view>& words,
                                               bool durable, MonoTime until) {
  redis::Question question;
  question.changes = true;
  question.durable = durable;
  redis::append_script(question.bytes, redis::commit_script(), false, words);
  auto answer = pipeline_->ask(question, until);
  // It was not carried out: the server must be given the script first.
  if (answer && answer->replies.front().error_is("NOSCRIPT")) {
    question.bytes.clear();
    redis::append_script(question.bytes, redis::commit_script(), true, words);
    answer = pipeline_->ask(question, until);
  }
  if (!answer) return answer.error();
  return Ran{std::move(answer->replies.front()), answer->replicas};
}

Result<Reading> RedisStore::read(const std::vector<std::string>& keys) {
  return where_the_name_leads([&] { return read_here(keys); });
}

Result<Reading> RedisStore::where_the_name_leads(const LookHere& look) {
  auto out = look();
  if (!out || *out) return out ? Result<Reading>(std::move(**out)) : out.error();
  pipeline_->forget_link();
  out = look();
  if (!out) return out.error();
  if (!*out) return unavailable(cat("the Redis at ", options_.where(), " is no longer the master"));
  return std::move(**out);
}

Result<std::optional<Reading>> RedisStore::read_here(const std::vector<std::string>& keys) {
  redis::Question question;
  question.answers = 2;
  // HMGET alone is atomic; a clock that was read a moment before it shows no timer fired early.
  redis::append_command(question.bytes, {"TIME"});
  redis::CommandWriter writer(question.bytes, keys.size() + 5);
  writer.word("HMGET").word(records_).word("#id").word("#run").word("#now");
  for (const std::string& key : keys) writer.word(cat(':', key));
  auto answer = ask_again(question);
  if (!answer) return answer.error();
  for (const Reply& reply : answer->replies) {
    if (reply.is(Reply::Kind::Error)) return redis::fault_of(reply, options_.where());
  }
  const std::vector<Reply>& time = answer->replies[0].items;
  const std::vector<Reply>& fields = answer->replies[1].items;
  if (time.size() != 2 || fields.size() != keys.size() + 3) {
    return redis::damaged("an answer of another size than asked");
  }
  if (auto ok = check_id(fields[0]); !ok) return ok.error();
  if (fields[1].text != run_id()) return std::optional<Reading>();
  auto at = redis::read_now(fields[2], time[0], time[1]);
  if (!at) return at.error();
  Reading out{.entries = {}, .store_wall = at->wall(), .store_time = at->time()};
  for (std::size_t i = 0; i < keys.size(); ++i) {
    auto entry = redis::read_entry(keys[i], fields[i + 3], *at);
    if (!entry) return entry.error();
    out.entries.push_back(std::move(*entry));
  }
  return std::optional(std::move(out));
}

Result<std::uint64_t> RedisStore::revision() {
  redis::Question question;
  question.answers = 2;
  redis::append_command(question.bytes, {"TIME"});
  redis::append_command(question.bytes, {"HMGET", records_, "#id", "#now"});
  auto answer = ask_again(question);
  if (!answer) return answer.error();
  for (const Reply& reply : answer->replies) {
    if (reply.is(Reply::Kind::Error)) return redis::fault_of(reply, options_.where());
    if (reply.items.size() != 2) return redis::damaged("an answer of another size than asked");
  }
  const std::vector<Reply>& fields = answer->replies[1].items;
  if (auto ok = check_id(fields[0]); !ok) return ok.error();
  const std::vector<Reply>& time = answer->replies[0].items;
  auto at = redis::read_now(fields[1], time[0], time[1]);
  if (!at) return at.error();
  return at->revision;
}

Result<Reading> RedisStore::scan_page(const ScanRange& range) {
  return where_the_name_leads([&] { return scan_here(range); });
}

Result<std::optional<Reading>> RedisStore::scan_here(const ScanRange& range) {
  const auto bounds = redis::bounds_of(range);
  if (!bounds || range.limit == 0) return read_here({});
  const std::string limit = std::to_string(range.limit);
  const std::vector<std::string_view> words = {
      records_,     index_,     range.backwards ? "ZREVRANGEBYLEX" : "ZRANGEBYLEX",
      bounds->from, bounds->to, limit};
  redis::Question question;
  redis::append_script(question.bytes, redis::scan_script(), false, words);
  auto answer = ask_again(question);
  if (answer && answer->replies.front().error_is("NOSCRIPT")) {
    question.bytes.clear();
    redis::append_script(question.bytes, redis::scan_script(), true, words);
    answer = ask_again(question);
  }
  if (!answer) return answer.error();
  Reply& reply = answer->replies.front();
  if (reply.is(Reply::Kind::Error)) return redis::fault_of(reply, options_.where());
  std::vector<Reply>& items = reply.items;
  if (items.size() < 5 || items.size() % 2 == 0) return redis::damaged("a scan of even size");
  if (auto ok = check_id(items[2]); !ok) return ok.error();
  if (items[3].text != run_id()) return std::optional<Reading>();
  auto at = redis::read_now(items[4], items[0], items[1]);
  if (!at) return at.error();
  Reading out{.entries = {}, .store_wall = at->wall(), .store_time = at->time()};
  for (std::size_t i = 5; i < items.size(); i += 2) {
    auto entry = redis::read_entry(std::move(items[i].text), items[i + 1], *at);
    if (!entry) return entry.error();
    out.entries.push_back(std::move(*entry));
  }
  return std::optional(std::move(out));
}

Result<Reading> RedisStore::scan(const ScanRange& range) {
  ScanRange page = range;
  page.limit = std::min(range.limit, kPage);
  auto out = scan_page(page);
  if (!out) return out;
  std::size_t got = out->entries.size();
  while (got == kPage && out->entries.size() < range.limit) {
    page.after = out->entries.back().key;
    page.limit = std::min(range.limit - out->entries.size(), kPage);
    auto next = scan_page(page);
    if (!next) return next;
    got = next->entries.size();
    std::ranges::move(next->entries, std::back_inserter(out->entries));
  }
  // A key without its record: a write that was cut short by a lack of permission.
  std::erase_if(out->entries, [](const Entry& entry) { return !entry.present(); });
  return out;
}

Result<CommitAnswer> RedisStore::commit(const std::vector<Step>& steps, Sync sync) {
  if (auto ok = check_steps(steps); !ok) return ok.error();
  std::vector<std::string> texts;
  texts.reserve(steps.size() * 3);
  const auto keep = [&](std::string text) -> std::string_view {
    return texts.emplace_back(std::move(text));
  };
  const MonoTime until = os::system_clock().mono() + options_.timeout;
  for (int tries = 0; tries < kMostRuns; ++tries) {
    const std::string run = run_id();
    texts.clear();
    std::vector<std::string_view> words = {records_, index_, id_, run, channels_};
    for (const Step& step : steps) {
      words.insert(words.end(),
                   {keep(redis::step_code(step)), step.key, keep(std::to_string(step.version)),
                    keep(std::to_string(step.ttl.count())), step.value});
    }
    auto ran = run_commit(words, sync == Sync::Durable, until);
    if (!ran) return ran.error();
    const std::vector<Reply>& items = ran->reply.items;
    const bool other_run = items.size() == 1 && items.front().number == -2;
    if (other_run || ran->reply.error_is("READONLY")) {
      // Nothing was written. If the connection is newer than `run`, the next try knows it already.
      if (run == run_id()) pipeline_->forget_link();
      continue;
    }
    auto answer = answered(steps, ran->reply);
    if (answer && std::holds_alternative<Committed>(*answer) && ran->replicas &&
        *ran->replicas < static_cast<std::int64_t>(options_.wait)) {
      return Error{Code::UnknownOutcome,
                   cat("committed at ", options_.where(), ", but only ", *ran->replicas, " of ",
                       options_.wait, " replicas have it: a fail-over may lose it")};
    }
    return answer;
  }
  return unavailable(
      cat("the Redis at ", options_.where(), " changes faster than it can be asked"));
}

Result<CommitAnswer> RedisStore::answered(const std::vector<Step>& steps,
                                          const Reply& reply) const {
  const std::vector<Reply>& items = reply.items;
  if (reply.is(Reply::Kind::Error)) {
    Error fault = redis::fault_of(reply, options_.where());
    if (!redis::surely_not_done(reply)) fault.code = Code::UnknownOutcome;
    return fault;
  }
  const bool numbers = !items.empty() && std::ranges::all_of(items, [](const Reply& item) {
    return item.is(Reply::Kind::Integer);
  });
  const Error unknown{Code::UnknownOutcome, "the Redis server gave an answer that is none"};
  if (!numbers) return unknown;
  const std::int64_t kind = items[0].number;
  if (kind == -1) return unavailable("the Redis store was emptied or replaced under this client");
  if (kind == -3) return redis::damaged("a record cannot be read");
  if (kind == 0 && items.size() == 2 && items[1].number >= 0 &&
      items[1].number < static_cast<std::int64_t>(steps.size())) {
    return CommitAnswer(Conflict{static_cast<std::size_t>(items[1].number)});
  }
  const bool plausible =
      std::ranges::all_of(items, [](const Reply& item) { return item.number >= 0; });
  if (kind != 1 || items.size() != steps.size() + 4 || !plausible) return unknown;
  Committed done;
  done.revision = static_cast<std::uint64_t>(items[1].number);
  done.store_wall = WallTime(Millis(items[2].number / 1000));
  done.store_time = Nanos(items[3].number * 1000);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    done.versions.push_back(static_cast<Version>(items[i + 4].number));
    done.granted_ttl.push_back(steps[i].ttl);
  }
  return CommitAnswer(done);
}

Result<std::unique_ptr<Watch>> RedisStore::watch(std::string_view key) { return hub_->watch(key); }

Result<std::uint64_t> RedisStore::appended(const std::string& prefix) {
  redis::Question question;
  redis::append_command(question.bytes,
                        {"ZLEXCOUNT", index_, cat('[', prefix), cat('(', prefix, "\xFF")});
  auto answer = ask_again(question);
  if (!answer) return answer.error();
  const Reply& reply = answer->replies.front();
  if (reply.is(Reply::Kind::Error)) return redis::fault_of(reply, options_.where());
  if (!reply.is(Reply::Kind::Integer) || reply.number < 0) return redis::damaged("a count is none");
  return static_cast<std::uint64_t>(reply.number);
}

}  // namespace stint::store
