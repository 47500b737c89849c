#include "store/dir/log_file.h"

#include "base/text.h"

namespace stint::store::dir {
namespace {

constexpr std::string_view kLogMagic = "stint log 1\n";
constexpr std::string_view kAnyMagic = "stint log ";
constexpr std::size_t kDigits = 16;

constexpr std::uint64_t kPreviousVoid = 1;
constexpr std::uint64_t kDurable = 2;
constexpr std::uint64_t kValidBefore = 4;
constexpr std::uint64_t kBase = 8;
constexpr std::uint64_t kIdentity = 16;

std::uint64_t flags_of(const LogFile& file) {
  return (file.previous_void ? kPreviousVoid : 0U) | (file.durable ? kDurable : 0U) |
         (file.valid_before ? kValidBefore : 0U) | (file.base ? kBase : 0U) |
         (file.identity ? kIdentity : 0U);
}

void pack_base(Packer& out, const Base& base) {
  out.number(base.number).number(base.nonce);
  out.number(base.tables.size());
  for (const std::string& table : base.tables) out.text(table);
  out.number(base.appended.size());
  for (const auto& [prefix, count] : base.appended) out.text(prefix).number(count);
  out.number(base.nonces.size());
  for (const Nonce nonce : base.nonces) out.number(nonce);
  out.number(base.identity.inode).number(base.identity.born);
}

Base unpack_base(Unpacker& in) {
  Base base;
  base.number = in.number();
  base.nonce = in.number();
  for (std::size_t left = in.count(8); left > 0; --left) base.tables.emplace_back(in.text());
  for (std::size_t left = in.count(16); left > 0; --left) {
    const std::string prefix(in.text());
    base.appended[prefix] = in.number();
  }
  for (std::size_t left = in.count(8); left > 0; --left) base.nonces.push_back(in.number());
  base.identity.inode = in.number();
  base.identity.born = in.number();
  return base;
}

}  // namespace

Identity Identity::of(const os::FileFacts& directory) {
  return {directory.inode, static_cast<std::uint64_t>(directory.born.value_or(Nanos(0)).count())};
}

std::string file_name(Number number) {
  const std::string digits = std::to_string(number);
  return digits.size() >= kDigits ? digits : std::string(kDigits - digits.size(), '0') + digits;
}

Number number_of(std::string_view name) {
  return name.size() == kDigits ? parse_digits(name).value_or(0) : 0;
}

std::string encode(const LogFile& file) {
  Packer out;
  out.raw(kLogMagic).number(file.number).number(file.nonce).number(file.previous);
  out.number(flags_of(file)).number(file.base_at);
  if (file.valid_before) out.number(static_cast<std::uint64_t>(file.valid_before->count()));
  out.number(file.changes.size());
  for (const Change& change : file.changes) {
    out.text(change.key).number(change.was_appended ? 1 : 0);
    pack(out, change.slot);
  }
  if (file.base) pack_base(out, *file.base);
  if (file.identity) out.number(file.identity->inode).number(file.identity->born);
  return std::move(out).sealed();
}

Result<LogFile> decode(std::string_view bytes, const std::string& name) {
  if (bytes.starts_with(kAnyMagic) && !bytes.starts_with(kLogMagic)) {
    return unavailable(cat(quoted(name), " was written by a newer stint; use that"));
  }
  Unpacker in(bytes);
  LogFile file;
  if (in.unseal() && in.raw(kLogMagic.size()) == kLogMagic) {
    file.number = in.number();
    file.nonce = in.number();
    file.previous = in.number();
    const std::uint64_t flags = in.number();
    file.base_at = in.number();
    file.previous_void = (flags & kPreviousVoid) != 0;
    file.durable = (flags & kDurable) != 0;
    if ((flags & kValidBefore) != 0) {
      file.valid_before = Nanos(static_cast<std::int64_t>(in.number()));
    }
    for (std::size_t left = in.count(24); left > 0; --left) {
      Change& change = file.changes.emplace_back();
      change.key = in.text();
      change.was_appended = in.number() != 0;
      change.slot = unpack_slot(in);
    }
    if ((flags & kBase) != 0) file.base = unpack_base(in);
    if ((flags & kIdentity) != 0) {
      Identity& identity = file.identity.emplace();
      identity.inode = in.number();
      identity.born = in.number();
    }
    if (in.done()) return file;
  }
  return unavailable(cat(quoted(name), bytes.empty() ? " is empty" : " is damaged or no commit",
                         ": the store is not read past it (docs/guides/store-dir.md)"));
}

}  // namespace stint::store::dir
