// stint seal, stint guard
#include <algorithm>
#include <array>

#include "app/guards.h"
#include "base/json_text.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/guard_git.h"
#include "cli/guard_postgres.h"
#include "cli/guarding.h"
#include "cli/seals.h"
#include "guard/git_target.h"
#include "guard/path_check.h"
#include "guard/words.h"
#include "os/files.h"
#include "os/host.h"

namespace stint::cli {
namespace {

constexpr std::array<Option, 7> kSealOptions = {
    {kResourceOption,
     kTokenOption,
     {"--mode", "M", "at-least or once: taken as at the other guards; a seal uses nothing up"},
     {"--adopt", "",
      "use a target that carries the fence of another resource or store's life (needs --why)"},
     {"--forget", "", "later runs and orders no longer seal it (needs --why)"},
     {"--why", "TEXT", "the reason, for the record"},
     {"--by", "WHO", "who says so (default: the user's name)"}}};
constexpr std::array<std::string_view, 3> kSealExamples = {
    "stint seal file:/srv/www/index.html git:origin/main   # inside a run",
    "stint seal admit:deploy --resource site --token 7",
    "stint seal file:/srv/index.html --resource site --token 7 --adopt --why 'a new store'"};

Result<std::vector<guard::Target>> targets_of(Session& session) {
  const guard::Guards guards = app::guards();
  std::vector<guard::Target> out;
  for (const std::string& text : session.words().operands()) {
    // What is to be forgotten may be gone already: its words are enough.
    auto target = session.words().has("--forget")
                      ? guard::parse_target(text, os::absolute("."))
                      : guard::find_target(guards, text, os::absolute("."));
    if (!target) return target.error();
    out.push_back(std::move(*target));
  }
  return out;
}

// By an operator's word: who and why go on record.
Status record_word(Session& session, app::Opened& opened, std::string_view kind,
                   const guard::Pass& pass, const std::string& target,
                   const guard::SealRequest::Adoption& word, const std::string& from = {}) {
  api::Event event;
  event.at = session.clock().wall();
  event.kind = kind;
  event.resource = pass.resource.text();
  event.token = pass.token.number();
  event.owner = pass.owner.text();
  event.details.emplace_back("target", target);
  if (!from.empty()) event.details.emplace_back("from", from);
  event.details.emplace_back("by", word.by);
  event.details.emplace_back("why", word.why);
  return opened.events().record(event);
}

Result<std::optional<guard::SealRequest::Adoption>> word_of(Session& session) {
  const Words& words = session.words();
  const bool needed = words.has("--adopt") || words.has("--forget");
  const auto why = words.value("--why");
  if (words.has("--adopt") && words.has("--forget"))
    return invalid("--adopt or --forget, not both");
  if (needed && !why) return invalid("--why TEXT is missing: the reason is kept on record");
  if (!needed && why) return invalid("--why goes with --adopt or --forget");
  if (!needed) return std::optional<guard::SealRequest::Adoption>();
  guard::SealRequest::Adoption out{*why, words.value("--by").value_or(os::user_name())};
  constexpr std::size_t kMostBytes = 1024;
  for (const std::string& text : {out.why, out.by}) {
    if (text.empty() || text.size() > kMostBytes || !is_utf8(text) || has_control(text)) {
      return invalid("why and by are 1 to 1024 bytes of UTF-8 in one line");
    }
  }
  return std::optional(std::move(out));
}

// The words that it is remembered by: as they were given, or as its guard would write them.
std::optional<std::string> as_remembered(const guard::Target& target,
                                         const std::vector<std::string>& sealed) {
  const auto known = [&](const std::string& words) {
    return std::ranges::find(sealed, words) != sealed.end();
  };
  if (known(target.words)) return target.words;
  const auto found = guard::find_target(app::guards(), target.words, os::absolute("."));
  if (found && known(found->words)) return found->words;
  return std::nullopt;
}

// All branches of a repository share one fence: it goes on to be sealed for those that are left.
std::string what_shares_it(const std::string& words, const std::vector<std::string>& left) {
  if (!words.starts_with("git:")) return {};
  for (const std::string& other : left) {
    if (guard::same_fence(other, words))
      return cat(" and is still sealed, for ", quoted(other), ": all branches there share it");
  }
  return ". All branches of a repository share it: none of them is sealed any more";
}

int forget_targets(Session& session, app::Opened& opened, const guard::Pass& pass,
                   const std::vector<guard::Target>& targets,
                   const guard::SealRequest::Adoption& word) {
  auto known = opened.fences().word(pass.resource);
  if (!known) return session.fail(known.error());
  int code = kDone;
  std::vector<std::string> left = known->sealed;
  for (const guard::Target& target : targets) {
    const auto words = as_remembered(target, known->sealed);
    if (!words) {
      std::string all;
      for (const std::string& one : known->sealed) all += cat(all.empty() ? "" : ", ", quoted(one));
      code = session.nothing(cat(quoted(target.words), " is not sealed with ",
                                 quoted(pass.resource.text()), "; remembered is ",
                                 all.empty() ? "nothing" : all));
      continue;
    }
    if (auto done = opened.fences().forget(pass.resource, *words, {word.why, word.by}); !done) {
      return session.fail(done.error());
    }
    std::erase(left, *words);
    session.say(cat(quoted(*words), " is no longer sealed with ", quoted(pass.resource.text()),
                    "; its fence stays as it is", what_shares_it(*words, left)));
  }
  return code;
}

// A target whose first seal failed is no duty of the resource, if it was not known before. An
// adoption is remembered as sealed from the start.
void give_up(const guard::SealRequest& request, app::SealReport& report, api::Fences& fences,
             const api::TokenWord& before) {
  if (!report.surely_failed) return;
  if (guard::memory_of(before, report.target) != guard::Memory::None) return;
  if (app::strike(request, report, fences) || !request.adopt) return;
  const api::ForgetWord word{.why = "its adoption was refused", .by = request.adopt->by};
  if (auto gone = fences.forget(request.pass.resource, report.target, word); !gone) {
    report.error.message += cat(" It is remembered all the same: ", gone.error().message);
  }
}

void tell_standing(app::Opened& opened, const guard::SealRequest& request,
                   const std::vector<app::SealReport>& reports, const api::TokenWord& before) {
  std::vector<std::string> standing;
  std::vector<std::string> anew;
  for (const app::SealReport& one : reports) {
    if (!one.shut()) continue;
    const bool known = guard::memory_of(before, one.target) == guard::Memory::Sealed;
    (known && one.was_none ? anew : standing).push_back(one.target);
  }
  guard::tell_standing(opened.fences(), request, standing);
  guard::tell_standing(opened.fences(), request, anew, core::Sealing::MadeAnew);
}

// A fence in the store by its own name. The proxy's seal goes through the proxy: proxy:URL.
bool is_name_in_store(const guard::Target& target) {
  return target.kind == guard::TargetKind::Admit ||
         (target.kind == guard::TargetKind::Proxy && target.place.find('#') != target.place.npos);
}

// A proxy's name in the store is the proxy's to seal again, not a run's.
bool is_remembered(const guard::Target& target) {
  return target.kind == guard::TargetKind::Admit || !is_name_in_store(target);
}

// The other resource that the target is fenced for; empty: none, as far as can be seen.
std::string other_holder(const guard::Guards& guards, const guard::Target& target,
                         const guard::SealRequest& request, api::Fences& fences) {
  std::optional<core::Fence> stands;
  if (is_name_in_store(target)) {
    if (auto fence = fences.fence(target.words); fence) stands = *fence;
  } else {
    guard::SealRequest plain = request;
    plain.adopt.reset();
    const auto answer = guard::seal(guards, target, plain, &fences);
    const auto* refused = answer ? std::get_if<guard::Refused>(&*answer) : nullptr;
    if (refused != nullptr) stands = refused->fence;
  }
  const bool other = stands && stands->resource != request.pass.resource.text();
  return other ? stands->resource : std::string();
}

// The former resource's runs seal it no more: they would be refused there for ever.
void forget_elsewhere(Session& session, api::Fences& fences, const std::string& resource,
                      const std::string& target, const guard::SealRequest::Adoption& word) {
  auto name = ResourceName::parse(resource);
  if (!name) return;
  if (auto gone = fences.forget(*name, target, {word.why, word.by}); !gone) {
    session.warn(cat("runs of ", quoted(resource), " still seal ", quoted(target), ": ",
                     gone.error().message));
  }
}

// The token that a fence is moved to where none was given: its holder's, who writes on; else a
// fresh one that belongs to nobody.
Result<Token> token_for_adoption(app::Opened& opened, const guard::Pass& pass,
                                 const guard::SealRequest::Adoption& word) {
  auto lease = opened.leases().get(pass.resource);
  if (!lease) return lease.error();
  if (lease->held || lease->state == core::State::Reserved) return lease->token;
  if (!lease->token.issued()) {
    return invalid(cat(quoted(pass.resource.text()),
                       " was never held, so there is no token to move the fence to. Look whether "
                       "that is its name; a first run of it issues one"));
  }
  auto fresh = opened.leases().revoke({pass.resource, lease->token, word.why, word.by},
                                      core::Reason::Revoked);
  if (!fresh) return fresh.error();
  if (const auto* held = std::get_if<api::Held>(&*fresh)) return held->lease.token;
  return Error{Code::Lost, cat("another took ", quoted(pass.resource.text()),
                               " meanwhile. Nothing was changed; look again")};
}

// Every target is tried; the exit code is the first failure's.
// `before`: what was remembered until now.
int seal_all(Session& session, app::Opened& opened, const guard::SealRequest& request,
             const std::vector<guard::Target>& targets, const api::TokenWord& before) {
  int code = kDone;
  std::string rows;
  std::vector<app::SealReport> reports;
  const guard::Guards guards = app::guards();
  for (const guard::Target& target : targets) {
    const std::string from =
        request.adopt ? other_holder(guards, target, request, opened.fences()) : std::string();
    app::SealReport report = app::seal_target(guards, target.words, request, opened.fences(),
                                              opened.events(), session.clock());
    if (report.shut() && !from.empty()) {
      forget_elsewhere(session, opened.fences(), from, target.words, *request.adopt);
    }
    give_up(request, report, opened.fences(), before);
    if (report.shut() && request.adopt) {
      const auto told = record_word(session, opened, "target_adopted", request.pass, target.words,
                                    *request.adopt, from);
      if (!told) report = {.target = target.words, .error = told.error()};
    }
    JsonText row;
    row.field("target", target.words).field("sealed", report.shut() ? 1 : 0);
    rows += cat(rows.empty() ? "" : ",", row.done());
    if (is_remembered(target)) reports.push_back(report);
    if (report.shut()) {
      if (!session.json()) session.say(cat("sealed ", quoted(target.words)));
      continue;
    }
    const int failed = session.fail(report.error);
    if (code == kDone) code = failed;
  }
  tell_standing(opened, request, reports, before);
  if (session.json()) session.print(cat("[", rows, "]"));
  return code;
}

int seal_command(Session& session) {
  auto targets = targets_of(session);
  if (!targets) return session.fail(targets.error());
  auto word = word_of(session);
  if (!word) return session.fail(word.error());
  auto pass = pass_of(session);
  if (!pass) return session.fail(pass.error());
  pass->mode = core::FenceMode::AtLeast;
  pass->warn = false;  // unsafe mode is for writes; a seal is what makes it safe again
  auto opened = session.open(false);
  if (!opened) return session.fail(opened.error());
  if (session.words().has("--forget")) {
    return forget_targets(session, **opened, *pass, *targets, **word);
  }
  const bool by_order = *word && !pass->token.issued();
  if (by_order) {
    auto token = token_for_adoption(**opened, *pass, **word);
    if (!token) return session.fail(token.error());
    pass->token = *token;
  }
  std::vector<std::string> texts;
  for (const guard::Target& target : *targets) {
    if (is_remembered(target)) texts.push_back(target.words);
  }
  auto before = (*opened)->fences().word(pass->resource);
  if (!before) return session.fail(before.error());
  core::Offer offer = guard::offer_of(*pass, "");
  // An adoption is never taken back by another process whose plain seal the target refused.
  if (*word) offer.sealing = core::Sealing::Stands;
  offer.by_order = by_order;
  auto remembered = (*opened)->fences().remember(offer, texts);
  if (!remembered) return session.fail(remembered.error());
  if (guard::is_refusal(*remembered)) {
    auto said = (*opened)->fences().word(pass->resource);
    return refused(session,
                   {.target = targets->front().words,
                    .verdict = *remembered,
                    .offered = pass->token,
                    .fence = {},
                    .newest_owner = said ? said->owner : Owner(),
                    .detail = ""},
                   *pass);
  }
  return seal_all(session, **opened, {.pass = *pass, .by_order = by_order, .adopt = *word},
                  *targets, *before);
}

// ---- guard

constexpr std::array<std::string_view, 6> kGuardExamples = {
    "stint guard check git:origin/main",
    "stint guard install /srv/git/blog.git --branch main --resource blog-repo",
    "stint guard install postgres://admin@db.example/blog",
    "stint guard protect postgres://admin@db.example/blog posts --resource blog-repo",
    "stint guard uninstall @/etc/stint/blog-database-url",
    "stint guard uninstall file:/srv/www/index.html"};
constexpr std::array<Option, 5> kGuardOptions = {
    {{"--resource", "R",
      "protect, install: whose token a table's writes must show; of PATH.git: whose fence"},
     {"--fence-ref", "PREFIX",
      "install PATH.git: where pushes keep their fences, if not in refs/stint/fence/"},
     {"--only-git", "",
      "install PATH.git: your word that whatever writes refs there is git, runs on that machine "
      "and "
      "is seen in /proc from its hooks; then locks of killed ones are cleared that nobody "
      "recorded"},
     kUnprotectOption,
     kBranchOption}};

Result<std::vector<guard::CheckLine>> lines_of(Session& session, const std::string& text) {
  if (is_postgres_place(text) && text.find('#') == text.npos) return postgres_check(session);
  const guard::Guards guards = app::guards();
  auto target = guard::settle_target(guards, text, os::absolute("."));
  if (!target) return target.error();
  auto opened = session.open(false);
  // A target may be looked at without its store, as far as that goes.
  return guard::check(guards, *target, opened ? &(*opened)->fences() : nullptr);
}

// Names in the store that no key's prefix covers: bound before names belonged to prefixes, or by a
// key without any.
std::vector<guard::CheckLine> names_outside(Session& session) {
  std::vector<guard::CheckLine> out;
  auto opened = session.open(false);
  if (!opened) return out;
  auto names = (*opened)->fences().names();
  auto keys = (*opened)->keys().list();
  if (!names || !keys) return out;
  std::vector<std::string> prefixes;
  for (const api::Key& key : *keys) {
    if (!key.revoked_at) prefixes.insert(prefixes.end(), key.prefixes.begin(), key.prefixes.end());
  }
  if (prefixes.empty()) return out;
  for (const std::string& name : *names) {
    const std::string_view owned = api::owned_part(name);
    const bool covered = std::ranges::any_of(
        prefixes, [&](const std::string& prefix) { return owned.starts_with(prefix); });
    if (covered) continue;
    out.push_back({guard::CheckLine::Level::Warn,
                   cat(quoted(name),
                       " lies outside the prefix of every key: it stays its present "
                       "resource's, and no key with prefixes can bind it anew")});
  }
  return out;
}

int check_target(Session& session, const std::string& text) {
  auto lines = lines_of(session, text);
  if (!lines) return session.fail(lines.error());
  if (text.starts_with(api::kAdmitScheme) || text.starts_with("proxy:")) {
    for (guard::CheckLine& line : names_outside(session)) lines->push_back(std::move(line));
  }
  int code = kDone;
  std::string rows;
  for (const guard::CheckLine& line : *lines) {
    using Level = guard::CheckLine::Level;
    const std::string_view level = line.level == Level::Ok     ? "ok"
                                   : line.level == Level::Warn ? "warn"
                                                               : "fail";
    if (line.level == Level::Fail) code = kFailed;
    if (session.json()) {
      rows += cat(rows.empty() ? "" : ",",
                  JsonText().field("level", level).field("text", line.text).done());
    } else {
      session.print(cat(level, level == "ok" ? "    " : "  ", line.text));
    }
  }
  if (session.json()) session.print(cat("[", rows, "]"));
  return code;
}

bool is_path_place(std::string_view word) {
  return word.starts_with("file:") || word.starts_with("dir:");
}

int path_uninstall(Session& session) {
  auto target = guard::parse_target(session.words().operands()[1], os::absolute("."));
  if (!target) return session.fail(target.error());
  auto done = guard::uninstall_path(*target);
  if (!done) return session.fail(done.error());
  const auto files = static_cast<std::int64_t>(done->files);
  if (done->files == 0) return session.done({{"removed", files}}, "there was no guard of stint");
  return session.done(
      {{"removed", files}},
      cat("removed ", files, " file(s) of the guard",
          done->resource.empty()
              ? std::string()
              : cat("; the next run of ", quoted(done->resource),
                    " makes them anew, unless it is forgotten there (stint seal --forget)")));
}

// Where something is installed: one line for each kind of place.
struct Place {
  bool (*is)(std::string_view word);
  int (*install)(Session&);  // null: its guard comes with the first seal
  int (*uninstall)(Session&);
  int (*table)(Session&);  // protect and unprotect; null: it has no tables
};
constexpr std::array<Place, 3> kPlaces = {
    {{is_path_place, nullptr, path_uninstall, nullptr},
     {is_postgres_place, postgres_install, postgres_uninstall, postgres_table},
     {is_git_place, git_install, git_uninstall, nullptr}}};

int guard_command(Session& session) {
  const auto& operands = session.words().operands();
  const std::string& verb = operands.front();
  const bool two = operands.size() == 2;
  if (verb == "check" && two) return check_target(session, operands[1]);
  for (const Place& place : kPlaces) {
    if (!place.is(operands[1])) continue;
    if (verb == "install" && two && place.install != nullptr) return place.install(session);
    if (verb == "uninstall" && two) return place.uninstall(session);
    if ((verb == "protect" || verb == "unprotect") && place.table != nullptr) {
      return place.table(session);
    }
  }
  return session.fail(
      invalid("usage: stint guard check TARGET, install|uninstall PATH.git|postgres://..., "
              "uninstall file:PATH|dir:PATH, protect|unprotect postgres://... TABLE"));
}

}  // namespace

const Command kSeal = {
    .name = "seal",
    .operands = "TARGET... [--resource R] [--token N] [--adopt --why TEXT]",
    .summary = "raise the fence at a target: from then on nothing older lands there",
    .details =
        "Seal, then read, then write. A target is file:PATH, dir:PATH, git:REMOTE/REF, "
        "git:URL#BRANCH, postgres://...#RESOURCE, proxy:URL or admit:NAME; never with a password "
        "in it. Inside a run resource and token are known. The targets are remembered with the "
        "lease once their seal has succeeded: later runs of the resource, transfer and revoke seal "
        "them again ('stint show R' lists them). Of more than 64 the one that was sealed longest "
        "ago is forgotten. --forget takes one off the list, for whoever may acquire the "
        "resource.\n\n"
        "--adopt is an operator's word that a target which carries the fence of another resource "
        "or of another store's life, or a torn one, is used with this one from now on. Without "
        "--token it is moved to the holder's token, and the holder writes on; if nobody holds the "
        "resource, to a fresh token. The fence of a proxy in the store is named as "
        "proxy:http://UPSTREAM#RESOURCE there. STINT_GUARD=warn does not weaken a seal.",
    .examples = kSealExamples,
    .options = kSealOptions,
    .least_operands = 1,
    .most_operands = api::kMostSealedTargets,
    .runs_command = false,
    .run = seal_command,
};

const Command kGuard = {
    .name = "guard",
    .operands = "check TARGET | install|uninstall PLACE | protect|unprotect PLACE TABLE",
    .summary = "put a guard in front of a target, look at it, take it away",
    .details =
        "check shows the fence, what crashed writers left, and what weakens the guard; at a git "
        "server it makes, moves and takes away a scratch fence.\n\n"
        "In a git repository that you run yourself (PATH.git): install puts a "
        "reference-transaction hook there, which refuses whoever shows a lower token, forces, "
        "deletes, or pushes to a guarded branch without a fence. Bind the branches with "
        "--resource: "
        "without it the fence of any resource opens them. A hook that is there already is "
        "kept and runs first. It also adds reference to core.fsync, so that a power cut does not "
        "roll a fence back.\n\n"
        "In a PostgreSQL database: install puts the functions stint.admit and stint.seal there; "
        "again is no change. protect makes a table and its partitions refuse every write whose "
        "transaction does not show a current token: set local stint.token = 'N'. uninstall removes "
        "all of it, and refuses while tables are protected. TABLE is written as in SQL. No "
        "password on the command line: PGPASSFILE, or @FILE for a file that holds the URL.\n\n"
        "Of a file or a directory: its guard comes with the first seal; uninstall takes its fences "
        "and all else that it keeps beside file:PATH or dir:PATH away.",
    .examples = kGuardExamples,
    .options = kGuardOptions,
    .least_operands = 2,
    .most_operands = 3,
    .runs_command = false,
    .run = guard_command,
    .verbs = "check install uninstall protect unprotect",
};

}  // namespace stint::cli
