#include "service/fence_records.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "base/json_text.h"
#include "base/sha256.h"
#include "service/record_fields.h"
#include "store/seam.h"

namespace stint::service {
namespace {

void put(JsonText& out, std::string_view name, Token token) {
  out.field(name, static_cast<std::int64_t>(token.number()));
}

Status check_name(std::string_view what, std::string_view name, std::size_t most) {
  if (!name.empty() && name.size() <= most && is_utf8(name) && !has_control(name)) return {};
  return invalid(cat(what, " is 1 to ", most,
                     " bytes of UTF-8 without control characters; this is ",
                     quoted(name.substr(0, most))));
}

Generation generation_of(Fields& fields) {
  auto generation = Generation::parse(fields.text("generation"));
  if (generation) return *generation;
  fields.fail("there is no generation");
  return {};
}

Token required_token(Fields& fields) {
  const Token token = fields.token("token");
  if (!token.issued()) fields.fail("there is no token");
  return token;
}

}  // namespace

std::string sealed_key(std::string_view resource) { return cat(kSealedPrefix, resource); }
std::string seals_key(std::string_view resource) { return cat(kSealsPrefix, resource); }
std::string fence_key(std::string_view target) { return cat(kFencePrefix, target); }
std::string quiet_key(std::string_view target) { return cat("quiet/", to_hex(sha256(target))); }
std::string act_key(std::string_view name, std::string_view key) {
  return cat(kActPrefix, name, '\x1F', key);
}

std::vector<std::string> Remembered::all() const {
  std::vector<std::string> out;
  std::ranges::merge(sealed, sealing, std::back_inserter(out));
  return out;
}

std::string encode_sealed(const Remembered& targets) {
  json::object out;
  out["targets"] = json::array(targets.sealed.begin(), targets.sealed.end());
  if (!targets.sealing.empty()) {
    out["sealing"] = json::array(targets.sealing.begin(), targets.sealing.end());
  }
  return json::serialize(out);
}

// 64 of them, with their words, must find room: the words are in the other record.
std::string seal_name(std::string_view target) {
  constexpr std::size_t kShort = 8;
  return to_hex(sha256(target)).substr(0, kShort);
}

std::string encode_seals(const Remembered& targets) {
  const auto seconds = [](auto length) {
    return std::chrono::duration_cast<std::chrono::seconds>(length).count();
  };
  json::object out;
  for (const auto& [name, one] : targets.times) {
    // Differences are short, also above a floor of many digits.
    json::array row = {one.token.number(), seconds(one.at.time_since_epoch()),
                       one.token.number() - one.first.number(), seconds(one.at - one.since)};
    if (one.shared) row.push_back(1);
    out[name] = std::move(row);
  }
  return json::serialize(out);
}

std::vector<std::string> make_room(Remembered& targets, const std::vector<std::string>& keep) {
  const auto time_of = [&](const std::string& one) {
    const auto found = targets.times.find(seal_name(one));
    return found == targets.times.end() ? SealTime() : found->second;
  };
  const auto older = [&](const std::string& a, const std::string& b) {
    const SealTime one = time_of(a);
    const SealTime other = time_of(b);
    return std::tie(one.token, one.at, one.since) < std::tie(other.token, other.at, other.since);
  };
  std::vector<std::string> gone;
  while (!check_sealed(targets)) {
    std::vector<std::string> may_go = targets.all();
    std::erase_if(
        may_go, [&](const std::string& one) { return std::ranges::find(keep, one) != keep.end(); });
    if (may_go.empty()) break;
    gone.push_back(*std::ranges::min_element(may_go, older));
    std::erase(targets.sealed, gone.back());
    std::erase(targets.sealing, gone.back());
    targets.times.erase(seal_name(gone.back()));
  }
  return gone;
}

std::string encode(const core::Fence& fence) {
  JsonText out;
  out.field("generation", fence.generation.hex());
  out.field("resource", fence.resource);
  put(out, "token", fence.token);
  if (fence.used) out.field("used", 1);
  out.field_if("key", fence.key);
  out.field_if("digest", fence.digest);
  if (fence.nobodys) out.field("nobodys", 1);
  return out.done();
}

std::string encode(const api::Act& act) {
  JsonText out;
  out.field("generation", act.generation.hex());
  out.field("resource", act.resource);
  put(out, "token", act.token);
  out.field_if("owner", act.owner.text());
  out.field("begun_at_ms", to_ms(act.begun_at));
  if (act.result_token) put(out, "result_token", *act.result_token);
  if (act.exit_code) out.field("exit_code", *act.exit_code);
  out.field_if("digest", act.digest);
  if (act.ended_at) out.field("ended_at_ms", to_ms(*act.ended_at));
  return out.done();
}

Result<Remembered> decode_sealed(std::string_view value) {
  Fields fields("sealed", value);
  fields.require("targets");
  Remembered out{.sealed = fields.texts("targets"), .sealing = fields.texts("sealing")};
  std::ranges::sort(out.sealed);
  std::ranges::sort(out.sealing);
  return fields.done(std::move(out));
}

Result<std::map<std::string, SealTime>> decode_seals(std::string_view value) {
  Fields fields("seals", value);
  std::map<std::string, SealTime> out;
  for (const auto& [name, row] : fields.object()) {
    const json::array* numbers = row.if_array();
    std::vector<std::int64_t> n;
    for (std::size_t i = 0; numbers != nullptr && i < numbers->size(); ++i) {
      if ((*numbers)[i].is_int64()) n.push_back((*numbers)[i].as_int64());
    }
    constexpr std::int64_t kLatest = std::int64_t{1}
                                     << 40;  // in seconds; far beyond what is written
    const bool whole = n.size() >= 4 && n.size() <= 5 && n.size() == numbers->size();
    if (!whole || n[0] < 0 || static_cast<std::uint64_t>(n[0]) > Token::kMax || n[2] < 0 ||
        n[2] > n[0] || n[1] < 0 || n[1] > kLatest || n[3] < -kLatest || n[3] > kLatest) {
      fields.fail("a row makes no sense");
      break;
    }
    const auto at = [](std::int64_t s) { return wall_from_ms(s * 1000); };
    out[std::string(name)] = {.token = Token(static_cast<std::uint64_t>(n[0])),
                              .at = at(n[1]),
                              .first = Token(static_cast<std::uint64_t>(n[0] - n[2])),
                              .since = at(n[1] - n[3]),
                              .shared = n.size() == 5 && n[4] != 0};
  }
  return fields.done(std::move(out));
}

Result<core::Fence> decode_fence(std::string_view value) {
  Fields fields("fence", value);
  core::Fence fence;
  fence.generation = generation_of(fields);
  fence.resource = fields.text("resource");
  if (!ResourceName::parse(fence.resource)) fields.fail("there is no resource");
  fence.token = required_token(fields);
  fence.used = fields.number("used") != 0;
  fence.key = fields.text("key");
  fence.digest = fields.text("digest");
  fence.nobodys = fields.number("nobodys") != 0;
  return fields.done(std::move(fence));
}

Result<api::Act> decode_act(std::string_view name, std::string_view key, std::string_view value) {
  Fields fields("act", value);
  api::Act act;
  act.name = name;
  act.key = key;
  act.generation = generation_of(fields);
  act.resource = fields.text("resource");
  act.token = required_token(fields);
  act.owner = fields.owner("owner");
  act.begun_at = wall_from_ms(fields.number("begun_at_ms"));
  if (fields.find("result_token") != nullptr) {
    act.result_token = fields.token("result_token");
    fields.require("exit_code");
    const std::int64_t code = fields.number("exit_code");
    if (code < 0 || code > 255) fields.fail("exit_code is not an exit code");
    act.exit_code = static_cast<int>(code);
  }
  act.digest = fields.text("digest");
  act.ended_at = fields.moment("ended_at_ms");
  return fields.done(std::move(act));
}

Result<std::int64_t> decode_unsaid(std::string_view value) {
  Fields fields("quiet", value);
  const std::int64_t unsaid = fields.number("unsaid");
  if (unsaid < 0) fields.fail("unsaid is not a count");
  return fields.done(unsaid);
}

Status check_target(std::string_view target) {
  return check_name("the name of a target", target, api::kMostTargetBytes);
}

Status check_act(std::string_view name, std::string_view key) {
  if (auto ok = check_name("the name of an act", name, api::kMostActNameBytes); !ok) return ok;
  return check_name("a key", key, api::kMostKeyBytes);
}

Status check_digest(std::string_view digest) {
  constexpr std::size_t kMostDigestBytes = 128;
  return digest.empty() ? Status() : check_name("a digest", digest, kMostDigestBytes);
}

Status check_offer(const core::Offer& offer) {
  if (auto ok = ResourceName::parse(offer.resource); !ok) return ok.error();
  if (offer.mode == core::FenceMode::AtLeast) return {};  // its key and digest are kept nowhere
  if (auto ok = check_name("a key", offer.key, api::kMostKeyBytes); !ok) return ok;
  return check_digest(offer.digest);
}

Status check_sealed(const Remembered& targets) {
  const std::vector<std::string> all = targets.all();
  for (const std::string& target : all) {
    if (auto ok = check_name("a target", target, api::kMostTargetBytes); !ok) return ok;
  }
  const std::string value = encode_sealed(targets);
  if (all.size() <= api::kMostSealedTargets && value.size() <= store::Store::kMaxValueBytes) {
    return {};
  }
  return invalid(cat("at most ", api::kMostSealedTargets, " targets of one resource, together ",
                     store::Store::kMaxValueBytes,
                     " bytes, are remembered as sealed. Guard the others with a lease of their "
                     "own"));
}

}  // namespace stint::service
