#include "guard/git_fence.h"

#include <algorithm>

#include "base/sha256.h"
#include "base/text.h"

namespace stint::guard {
namespace {

constexpr std::string_view kTitle = "stint fence 1";
constexpr std::size_t kMostFenceBytes = 8192;
constexpr std::string_view kUnclaimed = "-";
constexpr std::string_view kNobody = "nobody";

Error unreadable(std::string_view why) {
  return {Code::Failed, cat("the fence object is unreadable: ", why)};
}

// Takes "KEY value\n" off the front.
std::optional<std::string_view> take(std::string_view& text, std::string_view key) {
  if (!text.starts_with(key) || text.size() <= key.size() || text[key.size()] != ' ')
    return std::nullopt;
  const std::size_t end = text.find('\n');
  if (end == text.npos) return std::nullopt;
  const std::string_view value = text.substr(key.size() + 1, end - key.size() - 1);
  text.remove_prefix(end + 1);
  return value;
}

bool is_hex(std::string_view text, std::size_t least, std::size_t most) {
  return text.size() >= least && text.size() <= most && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::optional<std::uint64_t> number(std::string_view text) {
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  return parse_digits(text);
}

Status parse_used(std::string_view value, core::Fence& fence) {
  const std::size_t space = value.find(' ');
  if (space == value.npos) return unreadable("its line 'used'");
  auto key = from_hex(value.substr(0, space));
  const std::string_view digest = value.substr(space + 1);
  if (!key || digest.empty() || !is_hex(value.substr(0, space), 0, 2048) || has_control(digest))
    return unreadable("its line 'used'");
  fence.used = true;
  fence.key = *key;
  fence.digest = std::string(digest);
  return {};
}

}  // namespace

std::string claim_text(const GitFence& f) {
  if (!f.claim.empty()) return f.claim.hex();
  return std::string(f.fence.nobodys ? kNobody : kUnclaimed);
}

std::string encode(const GitFence& f) {
  std::string out =
      cat(kTitle, "\nresource ", f.fence.resource, "\ngeneration ", f.fence.generation.hex(),
          "\ntoken ", f.fence.token.number(), "\nseq ", f.seq, "\nclaim ", claim_text(f),
          "\nowner ", f.owner, "\nnonce ", f.nonce, "\n");
  if (f.fence.used) out += cat("used ", to_hex(f.fence.key), " ", f.fence.digest, "\n");
  return out;
}

Result<GitFence> parse_git_fence(std::string_view text) {
  if (text.size() > kMostFenceBytes) return unreadable("it is too long");
  const std::string first = cat(kTitle, "\n");
  if (!text.starts_with(first)) return unreadable("it does not begin like one");
  text.remove_prefix(first.size());
  GitFence out;
  const auto resource = take(text, "resource");
  const auto generation = take(text, "generation");
  const auto token = take(text, "token");
  const auto seq = take(text, "seq");
  const auto claim = take(text, "claim");
  const auto owner = take(text, "owner");
  const auto nonce = take(text, "nonce");
  if (!resource || !generation || !token || !seq || !claim || !owner || !nonce)
    return unreadable("a line is missing, or not in its place");
  const auto name = ResourceName::parse(*resource);
  const auto life = Generation::parse(*generation);
  if (!name || !life || !is_hex(*generation, 32, 32)) return unreadable("resource or generation");
  const auto token_number = number(*token);
  const auto seq_number = number(*seq);
  if (!token_number || *token_number == 0 || *token_number > Token::kMax || !seq_number ||
      *seq_number > Token::kMax) {
    return unreadable("token or seq");
  }
  const bool claimed = *claim != kUnclaimed && *claim != kNobody;
  if (claimed && !is_hex(*claim, 32, 64)) return unreadable("its claim");
  if (!owner->empty() && !Owner::parse(*owner)) return unreadable("its owner");
  if (!is_hex(*nonce, 32, 32)) return unreadable("its nonce");
  out.fence.resource = name->text();
  out.fence.generation = *life;
  out.fence.token = Token(*token_number);
  out.seq = *seq_number;
  if (claimed) out.claim = ClaimHash(std::string(*claim));
  out.fence.nobodys = *claim == kNobody;
  out.owner = std::string(*owner);
  out.nonce = std::string(*nonce);
  if (const auto used = take(text, "used")) {
    if (auto ok = parse_used(*used, out.fence); !ok) return ok.error();
  }
  if (!text.empty()) return unreadable("there is more than belongs there");
  return out;
}

std::string encode_commit(const FenceCommit& commit, std::string_view text) {
  const std::string who = cat("stint <stint@localhost> ", commit.at_s, " +0000");
  return cat("tree ", commit.tree, "\n",
             commit.parent.empty() ? std::string() : cat("parent ", commit.parent, "\n"), "author ",
             who, "\ncommitter ", who, "\n\n", text);
}

Result<CommitText> parse_fence_commit(std::string_view raw) {
  CommitText out;
  if (!take(raw, "tree")) return unreadable("it is no commit");
  if (const auto parent = take(raw, "parent")) out.parent = std::string(*parent);
  if (!take(raw, "author") || !take(raw, "committer") || !raw.starts_with('\n'))
    return unreadable("it is no commit of ours");
  out.text = std::string(raw.substr(1));
  return out;
}

std::string fence_ref(std::string_view prefix, const ResourceName& resource) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  constexpr std::size_t kMost = 180;  // a file name has 255 bytes, and git appends ".lock"
  std::string name;
  for (const char c : resource.text()) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    if (plain) {
      name += c;
    } else {
      name += '%';
      name += kDigits[byte >> 4U];
      name += kDigits[byte & 15U];
    }
  }
  // "%_" cannot come from the loop above.
  if (name.size() > kMost) name = cat(name.substr(0, 100), "%_", to_hex(sha256(resource.text())));
  return cat(prefix, name);
}

std::optional<ResourceName> resource_of_fence_ref(std::string_view prefix, std::string_view ref) {
  if (!ref.starts_with(prefix)) return std::nullopt;
  std::string text;
  for (std::size_t i = prefix.size(); i < ref.size(); ++i) {
    if (ref[i] != '%') {
      text += ref[i];
      continue;
    }
    std::string digits(ref.substr(i + 1, 2));
    for (char& c : digits) c = c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c;
    const auto byte = from_hex(digits);
    if (!byte || byte->size() != 1) return std::nullopt;
    text += *byte;
    i += 2;
  }
  auto resource = ResourceName::parse(text);
  if (!resource || fence_ref(prefix, *resource) != ref) return std::nullopt;
  return *resource;
}

Status check_fence_prefix(std::string_view prefix) {
  const bool shaped =
      prefix.starts_with("refs/") && prefix.ends_with("/") && prefix.size() > 6 &&
      prefix.size() <= 200 && prefix.find("//") == prefix.npos &&
      std::ranges::all_of(prefix, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '/';
      });
  if (!shaped) {
    return invalid(cat(quoted(prefix),
                       " cannot hold fences: give a prefix such as refs/stint/fence/ or "
                       "refs/heads/zz-fence/ (small letters, digits, '-', '_', '/' at the end)"));
  }
  if (prefix == "refs/heads/" || prefix.starts_with("refs/tags/")) {
    return invalid(cat(quoted(prefix), " cannot hold fences: they would stand among ",
                       prefix == "refs/heads/" ? "the branches" : "the tags"));
  }
  if (prefix > "refs/heads/") return {};
  return invalid(cat(quoted(prefix),
                     " stands before refs/heads/ in the order of names: a server puts the fence in "
                     "place first, and what is written with it could appear after a newer "
                     "holder's seal. Give one that stands behind, such as ",
                     kFencePrefix));
}

Status check_fence_order(std::string_view fence, std::string_view branch) {
  if (fence > branch || branch.starts_with("refs/tags/")) return {};
  return invalid(cat("the fence ", quoted(fence), " stands before ", quoted(branch),
                     " in the order of names, so that the server would put it in place first; "
                     "give --fence-ref a prefix that stands behind it, such as ",
                     kFencePrefix));
}

GitObject object_kind(std::string_view ref) {
  return ref.starts_with("refs/heads/") ? GitObject::Commit : GitObject::Blob;
}

}  // namespace stint::guard
