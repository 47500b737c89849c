#include "guard/git_remote.h"

#include <algorithm>

#include "base/text.h"
#include "guard/git_here.h"
#include "os/clock.h"

namespace stint::guard {
namespace {

// Our own git's words (in English: git_command.h) for failures before anything was sent.
bool nothing_was_sent(const std::string& talk) {
  constexpr std::string_view kWords[] = {
      "does not support --atomic push",
      "does not support --signed push",
      "does not support this repository's hash algorithm",
      "does not appear to be a git repository",
      "remote error: access denied or repository not exported",
      "Could not read from remote repository",
      "unable to access '",
      "Could not resolve host",
      "unable to look up",
      "unable to connect to",
      "could not read Username",
      "could not read Password",
      "Authentication failed for",
      "Connection refused",
      "hung up upon initial contact",
      "can't be combined with refspecs",
      "protocol '",
  };
  // Only what git, or its ssh, gave up with counts. What the other side says ("remote: ...") and
  // what the user's pre-push hook prints may be anything, also of a push that has landed.
  const auto gave_up = [](std::string_view line) {
    return line.starts_with("fatal: ") || line.starts_with("ssh: ");
  };
  const auto lines = split(talk, '\n');
  // The server, which is left waiting, may say of itself that we hung up.
  const bool unsupported = std::ranges::any_of(lines, [](std::string_view line) {
    return line.starts_with("fatal: the receiving end does not support");
  });
  const bool sent = !unsupported && std::ranges::any_of(lines, [](std::string_view line) {
    constexpr std::string_view kLost[] = {"send-pack: unexpected disconnect", "error: RPC failed",
                                          "fatal: read error", "fatal: write error",
                                          "fatal: the remote end hung up unexpectedly"};
    return std::ranges::any_of(kLost, [&](std::string_view w) { return line.starts_with(w); });
  });
  return !sent && std::ranges::any_of(lines, [&](std::string_view line) {
    return gave_up(line) && std::ranges::any_of(kWords, [&](std::string_view w) {
             return line.find(w) != line.npos;
           });
  });
}

constexpr std::string_view kLeadsTo = "ref: ";

// From what the server answered. "refs/stint/x" also matches "refs/heads/refs/stint/x": only the
// exact name counts.
std::string oid_in(const std::vector<std::string>& lines, const std::string& ref) {
  for (const std::string_view line : lines) {
    if (line.ends_with(cat("\t", ref)) && !line.starts_with(kLeadsTo))
      return std::string(line.substr(0, line.find('\t')));
  }
  return {};
}

std::string target_in(const std::vector<std::string>& lines, const std::string& ref) {
  for (const std::string_view line : lines) {
    if (line.starts_with(kLeadsTo) && line.ends_with(cat("\t", ref)))
      return std::string(line.substr(kLeadsTo.size(), line.find('\t') - kLeadsTo.size()));
  }
  return {};
}

}  // namespace

std::string words_of_hook(const std::string& talk) {
  constexpr std::string_view kRemote = "remote: ";
  constexpr std::string_view kRefused = "stint: refused: ";
  for (std::string_view line : split(talk, '\n')) {
    if (line.starts_with(kRemote)) line.remove_prefix(kRemote.size());
    if (line.starts_with(kRefused)) return printable(trim(line.substr(kRefused.size())));
  }
  return {};
}

bool only_git_gave_up(const std::string& talk) {
  bool gave_up = false;
  for (const std::string_view line : split(talk, '\n')) {
    if (line.starts_with("error: failed to push some refs")) {
      gave_up = true;
    } else if (line.starts_with("fatal:") || line.starts_with("error:") ||
               line.starts_with("send-pack:") || line.starts_with("remote:")) {
      return false;
    }
  }
  return gave_up;
}

PushFate fate_of_push(int exit_code, const std::vector<RefLine>& lines, const std::string& talk,
                      const std::string& fence, std::string* why) {
  const RefLine* of_fence = find_line(lines, fence);
  const auto any = [&](RefFate fate) {
    const auto found = std::ranges::find(lines, fate, &RefLine::fate);
    if (found != lines.end() && !found->reason.empty())
      *why = cat(printable(found->ref), ": ", printable(found->reason));
    return found != lines.end();
  };
  if (of_fence == nullptr) {
    *why = git_words(talk);
    return nothing_was_sent(talk) ? PushFate::Unreached : PushFate::Unknown;
  }
  if (any(RefFate::NoReport)) return PushFate::Unknown;
  const bool all_done =
      std::ranges::all_of(lines, [](const RefLine& line) { return line.fate == RefFate::Done; });
  if (all_done) return exit_code == 0 ? PushFate::Landed : PushFate::Unknown;
  if (of_fence->fate == RefFate::Stale) {
    *why = "the fence has moved";
    return PushFate::Moved;
  }
  if (any(RefFate::Behind) || any(RefFate::Stale)) return PushFate::Conflict;
  if (any(RefFate::Refused)) {
    *why = cat(*why, " (", git_words(talk), ")");
    return PushFate::Refused;
  }
  *why = git_words(talk);
  return PushFate::Locked;
}

RemoteFence GitRemote::parse(GitObject kind, std::string oid, std::string raw) {
  RemoteFence out{.oid = std::move(oid), .fence = {}, .unreadable = {}, .raw = std::move(raw)};
  std::string text = out.raw;
  if (kind == GitObject::Commit) {
    auto commit = parse_fence_commit(out.raw);
    if (!commit) {
      out.unreadable = commit.error().message;
      return out;
    }
    text = std::move(commit->text);
  }
  auto fence = parse_git_fence(text);
  if (fence) {
    out.fence = std::move(*fence);
  } else {
    out.unreadable = fence.error().message;
  }
  return out;
}

Result<std::string> GitRemote::url() const {
  if (!place_.url.empty()) return place_.url;
  auto end = git_.run({"remote", "get-url", "--push", "--", place_.remote});
  if (!end) return end.error();
  return end->ok() ? std::string(trim(end->out)) : place_.remote;
}

// One question for all of them.
bool GitRemote::shows(const std::vector<BranchUpdate>& refs) const {
  const auto from = url();
  if (!from) return false;
  std::vector<std::string> words = {"ls-remote", "--", *from};
  for (const BranchUpdate& ref : refs) words.push_back(ref.ref);
  const auto end = git_.run(words);
  if (!end || !end->ok()) return false;
  const auto lines = split(end->out, '\n');
  return std::ranges::all_of(refs, [&](const BranchUpdate& ref) {
    return std::ranges::find(lines, cat(ref.oid, "\t", ref.ref)) != lines.end();
  });
}

// What is not seen is not told as done, nor as failed: who pushed settles it.
void GitRemote::look_at(PushEnd& end, const std::vector<BranchUpdate>& refs,
                        std::string_view url) const {
  if (end.fate != PushFate::Landed || !looks_at(place_.look, url) || shows(refs)) return;
  end.fate = PushFate::Unknown;
  end.why = std::string(kNotShown);
  end.not_shown = true;
}

// The lines of the answer.
Result<std::vector<std::string>> GitRemote::ask(const std::vector<std::string>& words) const {
  std::vector<std::string> all = {"ls-remote", "--symref", "--", place_.url};
  all.insert(all.end(), words.begin(), words.end());
  auto end = git_.run(all);
  // A question that had to be cut off has changed nothing.
  if (!end && end.error().code == Code::UnknownOutcome) return unavailable(end.error().message);
  if (!end) return end.error();
  if (!end->ok()) return unavailable(git_words(end->talk)).during("asking the git server");
  std::vector<std::string> out;
  for (const std::string_view line : split(end->out, '\n')) out.emplace_back(line);
  return out;
}

Result<std::string> GitRemote::oid_at_server(const std::string& ref) const {
  auto lines = ask({ref});
  if (!lines) return lines.error();
  return oid_in(*lines, ref);
}

Result<std::string> GitRemote::leads_to(const std::string& ref) const {
  auto lines = ask({ref});
  if (!lines) return lines.error();
  return target_in(*lines, ref);
}

Result<bool> GitRemote::contains(const std::string& ref, const std::string& tip,
                                 const std::string& oid) const {
  auto fetched = git_.run({"fetch", "--no-tags", "--quiet", "--refmap=", "--", place_.url, ref});
  if (!fetched) return fetched.error();
  auto found = git_.run({"--no-replace-objects", "merge-base", "--is-ancestor", oid, tip});
  if (!found) return found.error();
  if (found->ok() || found->how.code() == 1) return found->ok();
  return unavailable(git_words(found->talk)).during("looking into the branch");
}

Result<std::string> GitRemote::object(const std::string& oid) const {
  const char* kind = object_kind(place_.ref) == GitObject::Commit ? "commit" : "blob";
  // Not what a replacement in the clone shows in its place.
  auto end = git_.run({"--no-replace-objects", "cat-file", kind, oid});
  if (!end) return end.error();
  if (!end->ok()) return Error{Code::Failed, git_words(end->talk)};
  return std::move(end->out);
}

Result<RemoteFence> GitRemote::read() const {
  constexpr int kMostLooks = 5;  // it may move between the two questions
  std::string why;
  for (int i = 0; i < kMostLooks; ++i) {
    std::vector<std::string> refs = {place_.ref};
    if (!place_.branch.empty()) refs.push_back(place_.branch);
    const auto lines = ask(refs);
    if (!lines) return lines.error();
    const auto with_branch = [&](RemoteFence out) {
      if (!place_.branch.empty()) out.leads_to = target_in(*lines, place_.branch);
      return out;
    };
    const std::string oid = oid_in(*lines, place_.ref);
    if (oid.empty()) return with_branch({});
    const GitObject kind = object_kind(place_.ref);
    if (auto raw = object(oid)) return with_branch(parse(kind, oid, std::move(*raw)));
    std::vector<std::string> words = {"fetch", "--no-tags", "--quiet", "--no-write-fetch-head",
                                      "--refmap="};
    // Never in the user's own repository: it would become a shallow one.
    if (place_.scratch) words.emplace_back("--depth=1");
    words.insert(words.end(), {"--", place_.url, place_.ref});
    auto fetched = git_.run(words);
    if (fetched && fetched->talk.find("unknown option") != std::string::npos) {
      std::erase(words, "--no-write-fetch-head");  // git 2.29 has it first
      fetched = git_.run(words);
    }
    if (!fetched) return fetched.error();
    if (auto raw = object(oid)) return with_branch(parse(kind, oid, std::move(*raw)));
    why = git_words(fetched->talk);
    if (fetched->ok()) {
      auto again = oid_at_server(place_.ref);
      if (again && *again == oid)
        return with_branch(
            {.oid = oid, .fence = {}, .unreadable = "it is no fence of ours", .raw = {}});
    }
  }
  return unavailable(why).during(cat("reading the fence ", place_.ref));
}

Result<GitRemote::Prepared> GitRemote::prepare(const PushPlan& plan) const {
  const GitObject kind = object_kind(place_.ref);
  Prepared out{.oid = {}, .raw = encode(plan.fence)};
  if (kind == GitObject::Blob && !place_.objects_in.empty()) {
    if (auto oid = put_blob(place_.objects_in, out.raw)) {
      out.oid = std::move(*oid);
      return out;
    }
  }
  if (kind == GitObject::Commit) {
    auto tree = git_.line({"hash-object", "-t", "tree", "-w", "/dev/null"}, "making a fence");
    if (!tree) return tree.error();
    const auto wall = os::SystemClock().wall().time_since_epoch();
    const auto at_s = std::chrono::duration_cast<std::chrono::seconds>(wall).count();
    out.raw = encode_commit({.tree = *tree, .parent = plan.expected, .at_s = at_s}, out.raw);
  }
  std::vector<std::string> words = {"hash-object",  "-w",
                                    "-t",           kind == GitObject::Commit ? "commit" : "blob",
                                    "--no-filters", "--stdin"};
  auto end = git_.run(words, Git::kShort, out.raw);
  if (!end) return end.error();
  if (!end->ok()) return Error{Code::Failed, git_words(end->talk)}.during("making a fence");
  out.oid = std::string(trim(end->out));
  return out;
}

Result<PushEnd> GitRemote::push(const PushPlan& plan) const {
  auto prepared = prepare(plan);
  if (!prepared) return prepared.error();
  PushEnd out{.fate = PushFate::Unknown,
              .why = {},
              .talk = {},
              .oid = prepared->oid,
              .raw = std::move(prepared->raw)};
  // Never --force nor '+': both make git leave out the comparison (facts: trap 2). G5
  std::vector<std::string> words = {"push", "--porcelain", "--atomic",
                                    cat("--force-with-lease=", place_.ref, ":", plan.expected)};
  if (!plan.verify) words.emplace_back("--no-verify");
  words.insert(words.end(), {"--", place_.remote});
  words.push_back(cat(prepared->oid, ":", place_.ref));
  for (const BranchUpdate& branch : plan.branches)
    words.push_back(cat(branch.oid, ":", branch.ref));
  auto end = git_.run(words, plan.limit);
  if (!end) {
    if (end.error().code != Code::UnknownOutcome) return end.error();
    out.why = end.error().message;
    return out;
  }
  out.talk = std::move(end->talk);
  // The server's words stand behind "remote: ".
  if (!end->ok() && end->out.empty() && out.talk.starts_with("fatal: --mirror can't")) {
    return invalid(cat("the remote ", quoted(place_.remote),
                       " is configured as a mirror: git would force every ref of it. Nothing was "
                       "pushed. Name a remote that is none"));
  }
  out.fate =
      fate_of_push(end->how.code(), parse_porcelain(end->out), out.talk, place_.ref, &out.why);
  std::vector<BranchUpdate> refs = plan.branches;
  refs.push_back({out.oid, place_.ref});
  look_at(out, refs, pushed_to(end->out));
  return out;
}

Result<GitEnd> GitRemote::remove(const std::string& oid) const {
  return git_.run({"push", "--porcelain", "--no-verify",
                   cat("--force-with-lease=", place_.ref, ":", oid), "--", place_.remote,
                   cat(":", place_.ref)});
}

}  // namespace stint::guard
