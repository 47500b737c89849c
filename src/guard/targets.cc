#include "guard/targets.h"

#include <array>

#include "base/text.h"
#include "base/url_secret.h"
#include "os/artifact.h"
#include "os/files.h"

namespace stint::guard {
namespace {

struct Scheme {
  TargetKind kind;
  std::string_view prefix;
};
constexpr std::array<Scheme, 7> kSchemes = {{
    {TargetKind::File, "file:"},
    {TargetKind::Directory, "dir:"},
    {TargetKind::Git, "git:"},
    {TargetKind::Postgres, "postgres://"},
    {TargetKind::Postgres, "postgresql://"},
    {TargetKind::Proxy, "proxy:"},
    {TargetKind::Admit, "admit:"},
}};

constexpr std::string_view kKinds =
    "file:PATH, dir:PATH, git:REMOTE/REF, git:URL#BRANCH, postgres://...#RESOURCE, proxy:URL or "
    "admit:NAME";

// Without looking at the disk: "a/../b" is "b" also where a is a link to elsewhere, so ".." is
// refused rather than guessed.
Result<std::string> absolute(std::string_view path, std::string_view here) {
  if (path.empty()) return invalid("a target needs a path");
  std::string out;
  const std::string whole = path.front() == '/' ? std::string(path) : cat(here, '/', path);
  for (const std::string_view part : split(whole, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      return invalid("a target's path has no '..': it would not mean the same place everywhere");
    }
    out += cat('/', part);
  }
  if (out.empty()) return invalid("the root directory is no target");
  return out;
}

// "user:secret@host": the secret must not get into the store, nor onto a screen..
bool has_password(std::string_view url) {
  const std::size_t scheme = url.find("://");
  const std::string_view rest = scheme == url.npos ? url : url.substr(scheme + 3);
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  const std::size_t at = authority.rfind('@');
  if (at != authority.npos && authority.substr(0, at).find(':') != authority.npos) return true;
  if (raw_password(url)) return true;
  const std::size_t query = url.find('?');
  if (query == url.npos) return false;
  for (const std::string_view option : split(url.substr(query + 1), '&')) {
    if (option.starts_with("password=") || option.starts_with("sslpassword=")) return true;
  }
  return false;
}

Error secret_in(TargetKind kind) {
  return invalid(cat("this ", word(kind), " target has a password in it, and targets are kept and ",
                     "printed: leave it out, and give it ",
                     kind == TargetKind::Git ? "by git's credential helper or an ssh key"
                                             : "by PGPASSFILE or a service file"));
}

Result<std::string> place_of(TargetKind kind, std::string_view rest, std::string_view text,
                             std::string_view here) {
  switch (kind) {
    case TargetKind::File:
      if (rest.ends_with('/')) {
        return invalid(cat(quoted(text), " ends in a slash: a directory is dir:PATH"));
      }
      return absolute(rest, here);
    case TargetKind::Directory: return absolute(rest, here);
    case TargetKind::Git:
      if (has_password(rest)) return secret_in(kind);
      if (rest.find_first_of("/#") == rest.npos) {
        return invalid(cat(quoted(text), " names no branch: git:REMOTE/REF or git:URL#BRANCH"));
      }
      return std::string(rest);
    case TargetKind::Postgres: {
      if (has_password(text)) return secret_in(kind);
      const std::size_t hash = text.rfind('#');
      if (hash == text.npos || hash + 1 == text.size()) {
        return invalid(cat(quoted(text), " names no resource: postgres://...#RESOURCE"));
      }
      return cat("postgres://", rest);
    }
    case TargetKind::Proxy:
      if (has_password(rest)) return secret_in(kind);
      return std::string(rest);
    case TargetKind::Admit: return std::string(rest);
  }
  return std::string(rest);
}

Error unsupported(const Target& target, std::string_view what) {
  return invalid(cat("unsupported: no ", what, " of ", word(target.kind),
                     " targets in this build of stint (", quoted(target.words), ")"));
}

const Guard* find(const Guards& guards, TargetKind kind) {
  const auto found = guards.find(kind);
  return found == guards.end() ? nullptr : &found->second;
}

}  // namespace

std::string_view word(TargetKind kind) {
  switch (kind) {
    case TargetKind::File: return "file";
    case TargetKind::Directory: return "directory";
    case TargetKind::Git: return "git";
    case TargetKind::Postgres: return "postgres";
    case TargetKind::Proxy: return "proxy";
    case TargetKind::Admit: return "admit";
  }
  return "unknown";
}

Result<Target> parse_target(std::string_view text, std::string_view here) {
  if (text.empty() || text.size() > api::kMostTargetBytes || !is_utf8(text) || has_control(text)) {
    return invalid(cat("a target is 1 to ", api::kMostTargetBytes,
                       " bytes of UTF-8 without control characters: ", kKinds));
  }
  for (const Scheme& scheme : kSchemes) {
    if (!text.starts_with(scheme.prefix)) continue;
    const std::string_view rest = text.substr(scheme.prefix.size());
    if (rest.empty()) break;
    auto place = place_of(scheme.kind, rest, text, here);
    if (!place) return place.error();
    const bool whole = scheme.kind == TargetKind::Postgres;
    Target out{
        .kind = scheme.kind, .words = whole ? *place : cat(scheme.prefix, *place), .place = *place};
    if (out.words.size() > api::kMostTargetBytes) {
      return invalid(cat("a target is at most ", api::kMostTargetBytes, " bytes, made absolute"));
    }
    return out;
  }
  // Not repeated as it is: an unknown scheme may have a password in it too.
  const std::string_view shown = text.substr(0, text.find_first_of(":/@"));
  return invalid(cat("a target that begins with ", quoted(shown), " is not known: ", kKinds));
}

Result<Target> settle_target(const Guards& guards, std::string_view text, std::string_view here) {
  auto target = parse_target(text, here);
  if (!target) return target;
  const Guard* guard = find(guards, target->kind);
  if (guard == nullptr || !guard->settle_words) return target;
  auto settled = guard->settle_words(*target);
  if (!settled) return settled.error();
  return parse_target(*settled, here);
}

Result<Target> find_target(const Guards& guards, std::string_view text, std::string_view here) {
  auto target = parse_target(text, here);
  if (!target) return target;
  const Guard* guard = find(guards, target->kind);
  if (guard == nullptr || !guard->seal) return unsupported(*target, "guard");
  return settle_target(guards, text, here);
}

Result<SealAnswer> seal(const Guards& guards, const Target& target, const SealRequest& request,
                        api::Fences* fences) {
  const Guard* guard = find(guards, target.kind);
  if (guard == nullptr || !guard->seal) return unsupported(target, "seal");
  return guard->seal(target, request, fences);
}

Result<std::vector<CheckLine>> check(const Guards& guards, const Target& target,
                                     api::Fences* fences) {
  const Guard* guard = find(guards, target.kind);
  if (guard == nullptr || !guard->check) return unsupported(target, "check");
  return guard->check(target, fences);
}

bool surely_failed(const Guards& guards, const Target& target, const Pass& pass,
                   const Result<SealAnswer>& answer) {
  if (answer) return std::holds_alternative<Refused>(*answer);
  if (answer.error().code == Code::UnknownOutcome) return false;
  const Guard* guard = find(guards, target.kind);
  return guard == nullptr || !guard->may_stand || !guard->may_stand(target, pass);
}

std::optional<std::string> words_of_absent(const Target& target) {
  if (target.kind != TargetKind::File && target.kind != TargetKind::Directory) return {};
  std::string folder = os::parent_of(target.place);
  if (os::exists(folder)) return {};
  while (folder != "/" && !os::exists(folder)) folder = os::parent_of(folder);
  const std::string there = os::real_path(folder);
  if (there.empty()) return {};
  const std::string rest = target.place.substr(folder == "/" ? 0 : folder.size());
  return cat(target.words.substr(0, target.words.find(':') + 1), there == "/" ? "" : there, rest);
}

namespace {

Result<SealAnswer> seal_in_store(const Target& target, const SealRequest& request,
                                 api::Fences* fences) {
  if (fences == nullptr) return unavailable("the store of this fence cannot be asked");
  core::Offer offer = offer_of(request.pass, "");
  offer.mode = core::FenceMode::AtLeast;  // a seal is not the one write of a token
  offer.by_order = request.by_order;
  offer.adopt = request.adopt.has_value();
  auto answer = fences->seal(target.words, offer);
  if (!answer) return answer.error();
  if (answer->verdict == core::Verdict::Admitted) {
    return SealAnswer(Sealed{.already = false});
  }
  return SealAnswer(Refused{.target = target.words,
                            .verdict = answer->verdict,
                            .offered = offer.token,
                            .fence = answer->fence,
                            .newest_owner = answer->owner,
                            .detail = ""});
}

Result<std::vector<CheckLine>> check_in_store(const Target& target, api::Fences* fences) {
  if (fences == nullptr) return unavailable("the store of this fence cannot be asked");
  auto fence = fences->fence(target.words);
  if (!fence) return fence.error();
  std::vector<CheckLine> out;
  out.push_back(
      {CheckLine::Level::Ok, *fence ? cat("the fence stands at token ", (*fence)->token.number(),
                                          " of ", quoted((*fence)->resource))
                                    : std::string("it has no fence yet")});
  out.push_back({CheckLine::Level::Warn,
                 "narrow, not zero: between the gate and the command's effect a newer holder may "
                 "begin"});
  return out;
}

}  // namespace

Guard store_guard() {
  return {.settle_words = nullptr, .seal = seal_in_store, .check = check_in_store};
}

}  // namespace stint::guard
