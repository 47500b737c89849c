// What a store, a queue and a server keep and say beyond what wire_fuzz.cc reads: journal rows of a
// sqlite: store, the records of leases, items, slots and fences, the files of a directory queue,
// what Redis says of its records and of itself, time zone files, answers of an HTTP server, git
// targets. The first byte says which. Built and run by tools/fuzz.sh (libFuzzer); the corpus is
// replayed by `fuzz_replay` in `make test`.
#include <cstdint>
#include <string>
#include <string_view>

#include "core/zone.h"
#include "guard/git_target.h"
#include "net/http/message.h"
#include "queue/dir_files.h"
#include "schedule/config.h"
#include "service/fence_records.h"
#include "service/once_records.h"
#include "service/queue_records.h"
#include "service/records.h"
#include "service/slot_records.h"
#include "store/redis/facts.h"
#include "store/redis/rows.h"
#include "store/sqlite/journal.h"
#include "tests/fuzz/entry.h"

namespace {

using namespace stint;
using fuzz::must;

void fuzz_journal(std::string_view text) {
  const auto row = store::decode_journal_row(text);
  if (!row) return;
  const auto again =
      store::decode_journal_row(store::encode_journal_row(row->mark, row->now, row->changes));
  must(again && again->mark == row->mark && again->changes.size() == row->changes.size());
}

void fuzz_stored(std::string_view text) {
  (void)service::decode_work(text);
  (void)service::decode_past(text);
  (void)service::decode_event(text);
  (void)service::decode_sealed(text);
  (void)service::decode_fence(text);
  (void)service::decode_act("target", "key", text);
  (void)service::decode_unsaid(text);
  (void)service::decode_kept({}, text);
  (void)service::decode_kept({.key = "k", .digest = "d"}, text);
  (void)service::decode_limits(text);
  (void)service::decode_slot(WallTime{}, text);
  (void)service::decode_range(WallTime{}, text);
  (void)service::decode_once(text);
  // What was read is written and read again as the same.
  if (const auto item = service::decode_item(text)) {
    const auto again = service::decode_item(service::encode(*item));
    must(again && again->item.epoch == item->item.epoch && again->item.state == item->item.state);
  }
  if (const auto job = service::decode_job(text)) {
    const auto again = service::decode_job(service::encode(*job));
    must(again && again->cursor == job->cursor && again->due.size() == job->due.size());
  }
}

// "folder/name\nnotes"
void fuzz_queue(std::string_view text) {
  const auto end = text.find('\n');
  const std::string_view path = text.substr(0, end);
  const auto slash = path.find('/');
  if (slash != path.npos) {
    const std::string folder(path.substr(0, slash));
    const std::string name(path.substr(slash + 1));
    const auto place = queue::parse_place(folder, "worker", name);
    if (place) must(place->path.ends_with(name));
  }
  const queue::Notes notes = queue::decode_notes(end == text.npos ? "" : text.substr(end + 1));
  (void)queue::limits_of(notes);
  must(queue::decode_notes(queue::encode(notes)) == notes);
}

// "record\nnow\ninfo"
void fuzz_redis(std::string_view text) {
  using store::redis::Reply;
  const auto bulk = [](std::string_view bytes) {
    return Reply{.kind = Reply::Kind::Bulk, .text = std::string(bytes)};
  };
  const auto first = text.find('\n');
  const auto second = first == text.npos ? text.npos : text.find('\n', first + 1);
  const std::string_view record = text.substr(0, first);
  const std::string_view now = first == text.npos ? "" : text.substr(first + 1, second - first - 1);
  const auto at = store::redis::read_now(bulk(now), bulk("1800000000"), bulk("500"));
  if (at) (void)store::redis::read_entry("key", bulk(record), *at);
  const std::string_view info = second == text.npos ? "" : text.substr(second + 1);
  if (const auto facts = store::redis::read_facts(info, {"appendfsync", "always"})) {
    (void)facts->may_lose();
    (void)facts->findings();
  }
}

void fuzz_zone(std::string_view text) {
  const auto zone = core::parse_tzif(text);
  if (zone) {
    const std::chrono::sys_seconds at(std::chrono::seconds(1'800'000'000));
    const auto span = zone->at(at);
    must(span.instant(span.local(at)) == at);
  }
  (void)core::parse_zone_rule(text);
}

void fuzz_answer(std::string_view text) {
  const auto end = net::http::find_head_end(text);
  if (!end || *end == 0) return;
  const auto head = net::http::parse_response(text.substr(0, *end));
  if (!head) return;
  const auto framing = net::http::framing_of(*head, false);
  if (!framing) return;
  net::http::BodyReader body(*framing);
  for (std::string_view rest = text.substr(*end); !body.done();) {
    const auto piece = body.next(rest);
    if (!piece || piece->consumed == 0) return;
    must(piece->consumed <= rest.size());
    rest.remove_prefix(piece->consumed);
  }
}

void fuzz_words(std::string_view text) {
  if (const auto target = guard::parse_git_target(text)) must(!target->fence_prefix.empty());
  (void)schedule::parse_queues(std::string(text), "stint.toml");
}

}  // namespace

extern "C" int FUZZ_ENTRY(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 7) {
    case 0: fuzz_journal(text); break;
    case 1: fuzz_stored(text); break;
    case 2: fuzz_queue(text); break;
    case 3: fuzz_redis(text); break;
    case 4: fuzz_zone(text); break;
    case 5: fuzz_answer(text); break;
    default: fuzz_words(text); break;
  }
  return 0;
}
