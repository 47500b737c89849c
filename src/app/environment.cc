#include "app/environment.h"

#include <unistd.h>

#include <algorithm>

#include "base/text.h"

namespace stint::app {
namespace {

// A line of STINT_HELD whose claim is not known: no holder has this one, so that it holds nothing.
constexpr std::string_view kNobodysClaim = "00000000000000000000000000000000";

Result<holder::Ancestral> parse_held(std::string_view line, std::string_view claim) {
  // The name may hold spaces; the last two words are the generation and the token.
  const std::size_t token_at = line.rfind(' ');
  const std::size_t generation_at =
      token_at == line.npos || token_at == 0 ? line.npos : line.rfind(' ', token_at - 1);
  if (generation_at == line.npos)
    return invalid(cat("STINT_HELD has a damaged line: ", quoted(line)));
  auto resource = ResourceName::parse(line.substr(0, generation_at));
  if (!resource) return resource.error();
  auto generation = Generation::parse(line.substr(generation_at + 1, token_at - generation_at - 1));
  if (!generation) return generation.error();
  auto token = Token::parse(line.substr(token_at + 1));
  if (!token) return token.error();
  auto parsed_claim = Claim::parse(claim.empty() ? kNobodysClaim : claim);
  if (!parsed_claim) return parsed_claim.error();
  return holder::Ancestral{*resource, *generation, *token, *parsed_claim};
}

}  // namespace

Environment Environment::current() {
  std::map<std::string, std::string> values;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == text.npos) continue;
    values.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return Environment(std::move(values));
}

std::optional<std::string> Environment::get(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

Result<std::vector<holder::Ancestral>> ancestral_leases(const Environment& environment) {
  std::vector<holder::Ancestral> out;
  const auto held = environment.get("STINT_HELD");
  if (!held) return out;
  const std::string claims_text = environment.get("STINT_HELD_CLAIMS").value_or("");
  const auto claims = split(claims_text, '\n');
  const std::string innermost = environment.get("STINT_CLAIM").value_or("");
  const std::string suffix = cat(' ', environment.get("STINT_GENERATION").value_or(""), ' ',
                                 environment.get("STINT_TOKEN").value_or(""));
  std::size_t at = 0;
  for (const std::string_view line : split(*held, '\n')) {
    if (line.empty()) continue;
    std::string_view claim = at < claims.size() ? claims[at] : std::string_view();
    // The innermost one's stands by itself too: a script may have set only that.
    if (claim.empty() &&
        line == cat(environment.get("STINT_RESOURCE").value_or(""), std::string_view(suffix))) {
      claim = innermost;
    }
    auto one = parse_held(line, claim);
    if (!one) return std::move(one.error()).during("reading STINT_HELD");
    // The innermost one counts: it stands later.
    std::erase_if(out, [&](const holder::Ancestral& a) { return a.resource == one->resource; });
    out.push_back(std::move(*one));
    ++at;
  }
  return out;
}

void HeldLines::add(const holder::Ancestral& one) {
  const std::string_view end = held.empty() ? "" : "\n";
  held += cat(end, one.resource.text(), ' ', one.generation.hex(), ' ', one.token.number());
  claims += cat(end, one.claim.hex());
}

std::vector<std::string> child_environment(const Environment& ours,
                                           const std::vector<holder::Ancestral>& ancestral,
                                           const ChildLeases& leases) {
  std::map<std::string, std::string> env = ours.all();
  if (!leases.innermost.empty()) {
    const holder::Ancestral& first = leases.innermost.front();
    env["STINT_RESOURCE"] = first.resource.text();
    env["STINT_TOKEN"] = cat(first.token.number());
    env["STINT_CLAIM"] = first.claim.hex();
    env["STINT_GENERATION"] = first.generation.hex();
  }
  env["STINT_OWNER"] = leases.owner.text();
  env["STINT_DEADLINE_MS"] = cat(leases.deadline_ms);
  env["STINT_DEADLINE_FILE"] = leases.deadline_file;
  env["STINT_PREVIOUS_PROGRESS"] = leases.previous_progress;
  env.erase("STINT_STORE");
  env.erase("STINT_STORE_FILE");
  // Who gets no store gets no key to it either.
  if (leases.store.empty()) {
    env.erase("STINT_KEY");
    env.erase("STINT_KEY_FILE");
  }
  if (!leases.store.empty()) env["STINT_STORE"] = leases.store;
  if (!leases.store_file.empty()) env["STINT_STORE_FILE"] = leases.store_file;
  HeldLines lines;
  for (const holder::Ancestral& one : ancestral) {
    const bool again = std::ranges::any_of(
        leases.innermost, [&](const holder::Ancestral& a) { return a.resource == one.resource; });
    if (!again) lines.add(one);
  }
  for (const holder::Ancestral& one : leases.innermost) lines.add(one);
  env["STINT_HELD"] = lines.held;
  env["STINT_HELD_CLAIMS"] = lines.claims;
  std::vector<std::string> out;
  for (const auto& [name, value] : env) out.push_back(cat(name, '=', value));
  return out;
}

}  // namespace stint::app
