// TZif files, RFC 9636. The first block is of 32 bits and skipped: every file of this century has
// the second one, of 64 bits, and the rule behind it.
#include "base/text.h"
#include "core/zone.h"

namespace stint::core {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

// Takes bytes from the front; past the end it fails once and for all.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  std::string_view take(std::size_t n) {
    if (n > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const std::string_view out = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return out;
  }
  std::uint64_t big_endian(std::size_t n) {
    std::uint64_t value = 0;
    for (const char c : take(n)) value = (value << 8U) | static_cast<unsigned char>(c);
    return value;
  }
  std::int32_t int32() {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(big_endian(4)));
  }
  std::int64_t int64() { return static_cast<std::int64_t>(big_endian(8)); }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

struct Header {
  bool sound = false;
  char version = '\0';
  std::size_t ut_marks = 0;
  std::size_t standard_marks = 0;
  std::size_t leap_seconds = 0;
  std::size_t times = 0;
  std::size_t types = 0;
  std::size_t letters = 0;

  std::size_t size_of_data(std::size_t time_size) const {
    return times * (time_size + 1) + types * 6 + letters + leap_seconds * (time_size + 4) +
           standard_marks + ut_marks;
  }
};

Header read_header(Bytes& in) {
  Header out;
  const bool magic = in.take(4) == "TZif";
  const std::string_view version = in.take(1);
  in.take(15);
  for (std::size_t* count : {&out.ut_marks, &out.standard_marks, &out.leap_seconds, &out.times,
                             &out.types, &out.letters}) {
    *count = static_cast<std::size_t>(in.big_endian(4));
  }
  out.sound = magic && in.ok();
  if (out.sound) out.version = version.front();
  return out;
}

Error damaged(std::string_view why) {
  return unavailable(cat("the time-zone file is damaged: ", why));
}

}  // namespace

Result<Zone> parse_tzif(std::string_view content) {
  Bytes in(content);
  const Header old = read_header(in);
  if (!old.sound) return invalid("it is no time-zone file");
  if (old.version < '2') return damaged("it is of version 1, which ends in 2037");
  // Far more than any zone has; keeps the sums below from overflow.
  constexpr std::size_t kMost = 100'000;
  const auto absurd = [](const Header& h) {
    return h.times > kMost || h.types > 256 || h.letters > kMost || h.leap_seconds > kMost ||
           h.standard_marks > h.types || h.ut_marks > h.types;
  };
  if (absurd(old)) return damaged("its counts make no sense");
  in.take(old.size_of_data(4));
  const Header header = read_header(in);
  if (!header.sound || absurd(header) || header.types == 0) return damaged("no second part");
  if (header.leap_seconds != 0) {
    return invalid("it counts leap seconds; take the zone whose name has no right/ in front");
  }
  Bytes data(in.take(header.size_of_data(8)));
  if (!in.ok()) return damaged("it is cut short");

  std::vector<ZoneChange> changes(header.times);
  for (std::size_t i = 0; i < header.times; ++i) {
    changes[i].at = sys_seconds(seconds(data.int64()));
    if (i > 0 && changes[i].at <= changes[i - 1].at) return damaged("its times do not ascend");
  }
  const std::string_view kinds = data.take(header.times);
  std::vector<seconds> offsets(header.types);
  for (seconds& offset : offsets) {
    offset = seconds(data.int32());
    if (offset < -kWidestOffset || offset > kWidestOffset) return damaged("an absurd offset");
    data.take(2);
  }
  for (std::size_t i = 0; i < header.times; ++i) {
    const auto kind = static_cast<unsigned char>(kinds[i]);
    if (kind >= offsets.size()) return damaged("a change to nothing");
    changes[i].offset = offsets[kind];
  }
  const std::string_view footer = in.rest();
  if (footer.size() < 2 || footer.front() != '\n' || footer.find('\n', 1) != footer.size() - 1) {
    return damaged("no rule at its end");
  }
  const std::string_view text = footer.substr(1, footer.size() - 2);
  std::optional<ZoneRule> rule;
  if (!text.empty()) {
    auto parsed = parse_zone_rule(text);
    if (!parsed) return damaged(parsed.error().message);
    rule = *parsed;
  }
  return Zone(offsets.front(), changes, rule);
}

}  // namespace stint::core
