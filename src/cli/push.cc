// stint push: a fenced git push.
#include <algorithm>
#include <array>
#include <cstdio>

#include "api/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/guarding.h"
#include "guard/git_defaults.h"
#include "guard/git_guard.h"
#include "os/files.h"

namespace stint::cli {
namespace {

// Nothing moves git's repository away from where we stand.
bool plain_repository(const app::Environment& environment) {
  constexpr const char* kMoving[] = {"GIT_DIR",
                                     "GIT_WORK_TREE",
                                     "GIT_COMMON_DIR",
                                     "GIT_OBJECT_DIRECTORY",
                                     "GIT_ALTERNATE_OBJECT_DIRECTORIES",
                                     "GIT_NAMESPACE",
                                     "GIT_QUARANTINE_PATH",
                                     "GIT_CEILING_DIRECTORIES"};
  return std::ranges::none_of(kMoving,
                              [&](const char* name) { return environment.all().contains(name); });
}

// Which git it is: after a first push it is not asked for its version again. Empty: none was found.
std::string program_of_git(const app::Environment& environment) {
  const std::string path = environment.get("PATH").value_or("");
  for (const std::string_view folder : split(path, ':')) {
    const std::string file = cat(folder.empty() ? "." : folder, "/git");
    if (const auto id = os::is_executable(file) ? os::file_id(file) : std::nullopt)
      return cat(file, " ", id->device, " ", id->inode, "\n");
  }
  return {};
}

// Which git it is, and whatever it is told outside of the repository, as text. Files that include
// others: not known.
std::optional<std::string> settings_of_git(const app::Environment& environment) {
  std::string out = program_of_git(environment);
  if (out.empty()) return std::nullopt;
  for (const auto& [name, value] : environment.all()) {
    if (name.starts_with("GIT_CONFIG")) out += cat(name, "=", value, "\n");
  }
  const std::string home = environment.get("HOME").value_or("");
  const std::string xdg = environment.get("XDG_CONFIG_HOME").value_or(cat(home, "/.config"));
  std::vector<std::string> files = {
      environment.get("GIT_CONFIG_SYSTEM").value_or("/etc/gitconfig")};
  if (const auto global = environment.get("GIT_CONFIG_GLOBAL")) {
    files.push_back(*global);
  } else {
    files.insert(files.end(), {cat(home, "/.gitconfig"), cat(xdg, "/git/config")});
  }
  for (const std::string& file : files) {
    const auto text = os::read_file(file);
    if (!text && os::exists(file)) return std::nullopt;
    if (text) out += cat(file, " ", text->size(), "\n", *text);
  }
  std::string small = out;
  std::ranges::transform(small, small.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  if (small.find("[include") != small.npos) return std::nullopt;
  return out;
}

Result<guard::GitPush> request_of(Session& session) {
  const Words& words = session.words();
  const auto& operands = words.operands();
  const auto operand = [&](std::size_t at) {
    return at < operands.size() ? std::optional(operands[at]) : std::nullopt;
  };
  auto pass = pass_of(session);
  if (!pass) return pass.error();
  const bool plain = plain_repository(session.environment());
  auto where = guard::where_to_push(guard::Git(), operand(0), operand(1), plain);
  if (!where) return where.error();
  auto limit = session.duration("--timeout", Millis(300'000));
  if (!limit) return limit.error();
  if (const auto prefix = words.value("--fence-ref")) where->target.fence_prefix = *prefix;
  if (const auto fallback = words.value("--fallback")) {
    if (*fallback != "seal-commit")
      return invalid(cat("--fallback ", quoted(*fallback), " is not known: seal-commit"));
    where->target.fallback = guard::GitFallback::SealCommit;
  }
  if (const auto look = words.value("--look")) {
    const auto parsed = guard::parse_look(*look);
    if (!parsed) return invalid(cat("--look ", quoted(*look), " is not known: always or never"));
    where->target.look = *parsed;
  }
  return guard::GitPush{.pass = std::move(*pass),
                        .target = std::move(where->target),
                        .source = std::move(where->source),
                        .dry_run = words.has("--dry-run"),
                        .plain = plain,
                        .settings = settings_of_git(session.environment()),
                        .limit = *limit,
                        .fences = [&session]() -> Result<api::Fences*> {
                          auto opened = session.open();
                          if (!opened) return opened.error();
                          return &(*opened)->fences();
                        },
                        .tell =
                            [&session](const std::string& talk) {
                              if (!session.quiet() && !session.json())
                                std::fwrite(talk.data(), 1, talk.size(), stderr);
                            }};
}

int push_command(Session& session) {
  auto request = request_of(session);
  if (!request) return session.fail(request.error());
  auto pushed = guard::push_git(*request);
  if (!pushed) return session.fail(pushed.error());
  if (const auto* no = std::get_if<guard::Refused>(&pushed->answer))
    return refused(session, *no, request->pass);
  if (pushed->warned) warned(session, *pushed->warned, request->pass);
  const auto& written = std::get<guard::Written>(pushed->answer);
  if (session.json()) {
    session.print(api::to_json(std::vector<api::JsonField>{
        {"target", pushed->target},
        {"ref", request->target.branch},
        {"oid", pushed->oid},
        {"resource", request->pass.resource.text()},
        {"token", static_cast<std::int64_t>(request->pass.token.number())},
        {"sealed", pushed->sealed},
        {"already", written.already},
        {"dry_run", request->dry_run}}));
  } else {
    session.say(cat(request->dry_run ? "would push " : "pushed ", pushed->oid.substr(0, 12), " to ",
                    printable(request->target.branch), " of ", printable(request->target.remote),
                    " with token ", request->pass.token.number(),
                    pushed->sealed ? " (sealed first)" : ""));
  }
  return kDone;
}

constexpr std::array<Option, 10> kPushOptions = {{
    kResourceOption,
    kTokenOption,
    kModeOption,
    kKeyOption,
    kLiveOption,
    {"--fence-ref", "PREFIX",
     "where fences are kept at the server (default refs/stint/fence/; refs/heads/zz-fence/ makes "
     "them branches, which a forge can protect)"},
    {"--fallback", "HOW",
     "seal-commit: for servers without atomic pushes, seal with empty commits on the branch; not "
     "with --mode once"},
    {"--look", "HOW",
     "always, never: whether to look at the server's refs after a push that it told as done "
     "(default: over ssh and HTTP, where it may be a forge with machinery around git)"},
    {"--timeout", "D",
     "give up waiting for the server after this long, seal and push together (default 5m)"},
    {"--dry-run", "", "decide, and push nothing"},
}};
constexpr std::array<std::string_view, 3> kPushExamples = {
    "stint run blog-repo --seal git:origin/main -- ./agent.sh   # in agent.sh: stint push",
    "stint push origin main",
    "stint push origin HEAD:refs/heads/drafts --json",
};

}  // namespace

const Command kPush = {
    .name = "push",
    .operands = "[REMOTE [REF]]",
    .summary = "push a branch if this run still holds the lease",
    .details =
        "Pushes the branch and the lease's fence in one atomic push: the server itself refuses "
        "both "
        "if a newer holder has sealed or pushed, however late this one wakes up. Never forces. "
        "Without REMOTE and REF: the current branch, to where git push would put it. REF is "
        "BRANCH, SOURCE:BRANCH or a full name; a tag is written refs/tags/NAME.\n"
        "If no fence of this token stands at the server, it is sealed first, in a push of its own. "
        "Your pre-push hook runs once, on the branch.\n"
        "Exit code 13: refused, a newer holder is there. 1: a conflict (fetch and rebase, then "
        "push "
        "again; the fence still stands) or the server said no. 14: it may have landed. 69: the "
        "server or the store was not reached. In all but 14 the branch was not changed.",
    .examples = kPushExamples,
    .options = kPushOptions,
    .least_operands = 0,
    .most_operands = 2,
    .runs_command = false,
    .run = push_command,
};

}  // namespace stint::cli
