// What people write and programs pass on: names, durations, moments, store URLs, cron expressions,
// job files, time zone files. The first byte says which. Built and run by tools/fuzz.sh
// (libFuzzer); the corpus is replayed by `fuzz_replay` in `make test`.
#include <cstdint>
#include <string>
#include <string_view>

#include "app/store_url.h"
#include "base/base64.h"
#include "base/names.h"
#include "base/rfc3339.h"
#include "base/time.h"
#include "core/cron.h"
#include "core/zone.h"
#include "schedule/config.h"
#include "tests/fuzz/entry.h"

namespace {

using namespace stint;
using fuzz::must;

void fuzz_names(std::string_view text) {
  // What was taken is told again in the same words.
  if (const auto name = ResourceName::parse(text)) must(name->text() == text);
  if (const auto owner = Owner::parse(text)) must(owner->text() == text);
  if (const auto token = Token::parse(text))
    must(Token::parse(std::to_string(token->number())).has_value());
  (void)Claim::parse(text);
  if (const auto generation = Generation::parse(text)) must(generation->hex() == text);
}

void fuzz_times(std::string_view text) {
  if (const auto length = parse_duration(text)) {
    must(length->count() > 0);
    const auto again = parse_duration(format_duration(*length));
    must(again && *again == *length);
  }
  (void)parse_rfc3339(text);
}

void fuzz_url(std::string_view text) {
  const auto url = app::parse_store_url(text);
  if (!url) return;
  // A password is never shown, and what is shown can be read again.
  must(!url->has_password || url->printable != url->whole);
  (void)url->identity();
  const auto again = app::parse_store_url(url->whole);
  must(again && again->whole == url->whole);
}

void fuzz_cron(std::string_view text) {
  const auto expression = core::parse_cron(text);
  if (!expression || !core::ever_fires(*expression)) return;
  const core::Zone zone;
  const std::chrono::sys_seconds from(std::chrono::seconds(1'800'000'000));
  const auto next = core::next_time(*expression, zone, from, core::Bound::Exclusive);
  if (next) must(next->instant > from);
}

void fuzz_jobs(std::string_view text) {
  (void)schedule::parse_config(std::string(text), "stint.toml",
                               [](const std::string&) { return Result<core::Zone>(core::Zone()); });
}

}  // namespace

extern "C" int FUZZ_ENTRY(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 5) {
    case 0: fuzz_names(text); break;
    case 1: fuzz_times(text); break;
    case 2: fuzz_url(text); break;
    case 3: fuzz_cron(text); break;
    default: fuzz_jobs(text); break;
  }
  return 0;
}
