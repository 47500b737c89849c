#include "guard/fence_file.h"

#include <array>
#include <utility>

#include "base/random.h"
#include "base/sha256.h"
#include "base/text.h"

namespace stint::guard {
namespace {

constexpr std::array<std::pair<Beside, std::string_view>, 6> kKinds = {{
    {Beside::Fence, "fence"},
    {Beside::Carried, "carried"},
    {Beside::Used, "used"},
    {Beside::Stage, "stage"},
    {Beside::Seal, "seal"},
    {Beside::Trash, "trash"},
}};

constexpr std::string_view kFenceHead = "stint fence 2";
constexpr std::string_view kAnyFenceHead = "stint fence ";
constexpr std::string_view kUsedHead = "stint used 1";
constexpr std::string_view kYes = "yes";
constexpr std::size_t kCheck = 16;  // hexadecimal digits
constexpr std::size_t kHalf = 16;   // hexadecimal digits of a generation in a nonce

std::string_view word_of(Beside kind) {
  for (const auto& [one, word] : kKinds) {
    if (one == kind) return word;
  }
  return {};
}

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}
bool is_hex32(std::string_view text) { return is_hex(text, 32); }

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

std::string beside(std::string_view artifact, Beside kind, Token token, std::string_view rest) {
  return cat('.', artifact, '.', word_of(kind), '.', token.number(), rest.empty() ? "" : ".", rest);
}

Error torn(std::string_view name, std::string_view why) {
  return unavailable(cat("the fence file ", quoted(name), " cannot be understood (", why,
                         "), so nothing was written. A guard never leaves such a file: look who "
                         "made or damaged it. An operator can adopt the target with a reason "
                         "(docs/guides/guard-files.md)"));
}

std::string another_format(std::string_view text) {
  const std::string_view head = text.substr(0, text.find('\n'));
  if (!head.starts_with(kAnyFenceHead) || head == kFenceHead) return "it does not begin like one";
  const std::string_view number = head.substr(kAnyFenceHead.size());
  return cat("its format is ", quoted(number), ", and this stint reads and writes ",
             kFenceHead.substr(kAnyFenceHead.size()));
}

// "key value" lines in a fixed order, each ended by a newline.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {}
  bool line(std::string_view expected) { return take() == expected; }
  // Empty: it is not the next line.
  std::optional<std::string> value(std::string_view key) {
    const std::string_view before = text_;
    const auto whole = take();
    if (whole && whole->size() > key.size() && whole->starts_with(key) &&
        (*whole)[key.size()] == ' ') {
      return std::string(whole->substr(key.size() + 1));
    }
    text_ = before;
    return std::nullopt;
  }
  bool at_end() const { return text_.empty(); }

 private:
  std::optional<std::string_view> take() {
    const std::size_t end = text_.find('\n');
    if (end == text_.npos) return std::nullopt;
    const std::string_view out = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return out;
  }
  std::string_view text_;
};

std::optional<Token> token_of(const std::optional<std::string>& text) {
  if (!text || text->starts_with('0')) return std::nullopt;
  const auto token = Token::parse(*text);
  return token ? std::optional(*token) : std::nullopt;
}

std::optional<Generation> generation_of(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  const auto generation = Generation::parse(*text);
  return generation ? std::optional(*generation) : std::nullopt;
}

// Everything after the parts that every fence has.
bool parse_rest(Lines& lines, StandingFence& out) {
  const auto life = lines.value("life");
  if (!life || !parse_digits(*life)) return false;
  out.life = *parse_digits(*life);
  if (const auto text = lines.value("check")) {
    if (!is_hex(*text, kCheck)) return false;
    out.check = *text;
  }
  if (const auto text = lines.value("nobodys")) {
    if (*text != kYes) return false;
    out.fence.nobodys = true;
  }
  return lines.at_end();
}

}  // namespace

Result<std::optional<BesideName>> parse_beside(std::string_view artifact, std::string_view name) {
  const std::optional<BesideName> none;
  const std::size_t head = artifact.size() + 2;
  if (name.size() < head || name[0] != '.' || name.substr(1, artifact.size()) != artifact ||
      name[head - 1] != '.') {
    return none;
  }
  for (const auto& [kind, word] : kKinds) {
    std::string_view rest = name.substr(head);
    if (!rest.starts_with(word) || rest.size() <= word.size() || rest[word.size()] != '.') continue;
    rest.remove_prefix(word.size() + 1);
    const std::size_t dot = rest.find('.');
    const std::string_view number = rest.substr(0, dot);
    const std::string_view tail = dot == rest.npos ? std::string_view() : rest.substr(dot + 1);
    // Only a fence may do without a tail. Others' artifacts have such names too (`FILE.fence.7`).
    const bool bare = dot == rest.npos;
    if (!is_number(number) || (bare ? kind != Beside::Fence : !is_hex32(tail))) return none;
    const auto token = token_of(std::string(number));
    if (!token && kind == Beside::Fence) return torn(name, "its number is no token");
    if (!token) return none;
    return std::optional(BesideName{std::string(name), kind, *token, std::string(tail)});
  }
  return none;
}

std::optional<OwnName> find_own(std::string_view name) {
  if (!name.starts_with('.')) return std::nullopt;
  for (const auto& [kind, word] : kKinds) {
    const std::string middle = cat('.', word, '.');
    for (auto at = name.find(middle, 2); at != name.npos; at = name.find(middle, at + 1)) {
      const std::string_view artifact = name.substr(1, at - 1);
      const auto parsed = parse_beside(artifact, name);
      if (!parsed) return OwnName{std::string(artifact), std::nullopt};
      if (*parsed) return OwnName{std::string(artifact), *parsed};
    }
  }
  return std::nullopt;
}

bool is_guards_own(std::string_view name) { return find_own(name).has_value(); }

bool above(const StandingFence& a, const StandingFence& b) {
  if (a.life != b.life) return a.life > b.life;
  if (a.fence.token != b.fence.token) return a.fence.token > b.fence.token;
  return b.carried && !a.carried;
}

bool same_line(const StandingFence& a, const StandingFence& b) {
  return a.fence.generation == b.fence.generation && a.fence.resource == b.fence.resource;
}

Generation line_of(const Generation& generation, std::string_view resource) {
  const std::string digits = to_hex(sha256(cat(generation.hex(), ' ', resource)));
  return *Generation::parse(std::string_view(digits).substr(0, 2 * kHalf));
}

std::string fence_name(std::string_view artifact, Token token) {
  return beside(artifact, Beside::Fence, token, "");
}

std::string long_fence_name(std::string_view artifact, Token token, const Generation& line) {
  return beside(artifact, Beside::Fence, token, line.hex());
}

std::string carried_name(std::string_view artifact, Token token, const Generation& line) {
  return beside(artifact, Beside::Carried, token, line.hex());
}

std::string used_name(std::string_view artifact, Token token, const Generation& generation) {
  return beside(artifact, Beside::Used, token, generation.hex());
}

std::string fresh_name(std::string_view artifact, Beside kind, Token token, const Generation& line,
                       Random& random) {
  const std::string nonce = cat(line.hex().substr(0, kHalf), random.id_hex().substr(0, kHalf));
  return beside(artifact, kind, token, nonce);
}

bool made_by(const BesideName& one, const Generation& line) {
  return one.rest.substr(0, kHalf) == line.hex().substr(0, kHalf);
}

std::string holder_check(const Claim& claim, const core::Fence& fence) {
  const auto digest = sha256(cat("stint holder check\n", claim.hex(), '\n', fence.generation.hex(),
                                 '\n', fence.resource, '\n', fence.token.number(), '\n'));
  return to_hex(digest).substr(0, kCheck);
}

std::string fence_text(const StandingFence& one) {
  std::string out =
      cat(kFenceHead, "\ngeneration ", one.fence.generation.hex(), "\nresource ",
          one.fence.resource, "\ntoken ", one.fence.token.number(), "\nlife ", one.life, '\n');
  if (!one.check.empty()) out += cat("check ", one.check, '\n');
  if (one.fence.nobodys) out += cat("nobodys ", kYes, '\n');
  return out;
}

Result<StandingFence> parse_fence(const BesideName& name, std::string_view text) {
  if (text.empty()) return torn(name.name, "it is empty");
  if (!is_utf8(text)) return torn(name.name, "it is not text");
  Lines lines(text);
  if (!lines.line(kFenceHead)) return torn(name.name, another_format(text));
  StandingFence out;
  out.name = name.name;
  out.carried = name.kind == Beside::Carried;
  const auto generation = generation_of(lines.value("generation"));
  const auto resource = lines.value("resource");
  const auto token = token_of(lines.value("token"));
  if (!generation || !resource || !ResourceName::parse(*resource) || !token ||
      !parse_rest(lines, out)) {
    return torn(name.name, "its content is damaged");
  }
  if (*token != name.token ||
      (!name.rest.empty() && name.rest != line_of(*generation, *resource).hex())) {
    return torn(name.name, "its name and its content differ");
  }
  out.fence.generation = *generation;
  out.fence.resource = *resource;
  out.fence.token = *token;
  return out;
}

std::string used_text(const UsedMark& mark) {
  return cat(kUsedHead, "\ngeneration ", mark.generation.hex(), "\ntoken ", mark.token.number(),
             "\nkey ", mark.key, "\ndigest ", mark.digest, "\nstage ", mark.stage, "\ninode ",
             mark.inode, '\n');
}

Result<UsedMark> parse_used(std::string_view name, std::string_view text) {
  Lines lines(text);
  const bool head = is_utf8(text) && lines.line(kUsedHead);
  const auto generation = generation_of(lines.value("generation"));
  const auto token = token_of(lines.value("token"));
  const auto key = lines.value("key");
  const auto digest = lines.value("digest");
  const auto stage = lines.value("stage");
  const auto inode = lines.value("inode");
  if (!head || !generation || !token || !key || !digest || !stage || !inode ||
      !parse_digits(*inode) || !lines.at_end() || stage->find('/') != stage->npos) {
    return torn(name, "its content is damaged");
  }
  return UsedMark{*generation, *token, *key, *digest, *stage, *parse_digits(*inode)};
}

}  // namespace stint::guard
