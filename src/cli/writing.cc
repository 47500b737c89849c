// stint write, publish: the guards of files and directories.
#include <array>

#include "api/json.h"
#include "app/lazy_fences.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/guarding.h"
#include "guard/directory_guard.h"
#include "guard/file_guard.h"
#include "os/directory.h"
#include "os/files.h"

namespace stint::cli {
namespace {

// How the answer is told. `target`: as it was named.
int tell(Session& session, Result<guard::WriteAnswer> answer, const guard::Pass& pass,
         const std::string& target) {
  if (!answer) return session.fail(answer.error());
  if (const auto* refusal = std::get_if<guard::Refused>(&*answer)) {
    return refused(session, *refusal, pass);
  }
  const auto& written = std::get<guard::Written>(*answer);
  if (written.warned) warned(session, *written.warned, pass);
  if (!written.narrow.empty()) session.warn(cat(quoted(target), ": ", written.narrow));
  if (written.already) session.say(cat(quoted(target), ": this very write was made before"));
  if (session.json()) {
    std::vector<api::JsonField> fields = {
        {"target", target},
        {"resource", pass.resource.text()},
        {"token", static_cast<std::int64_t>(pass.token.number())},
        {"already", written.already},
        {"window", std::string(written.warned           ? "none"
                               : written.narrow.empty() ? "zero"
                                                        : "narrow")}};
    if (!written.digest.empty()) fields.emplace_back("digest", written.digest);
    session.print(api::to_json(fields));
  }
  return kDone;
}

app::LazyFences fences_of(Session& session) {
  return app::LazyFences([&session]() -> Result<api::Fences*> {
    auto opened = session.open();
    if (!opened) return opened.error();
    return &(*opened)->fences();
  });
}

int write_command(Session& session) {
  auto pass = pass_of(session);
  if (!pass) return session.fail(pass.error());
  // An unset variable is no "whatever is there".
  const auto condition = session.words().value("--if-match");
  if (condition && condition->empty()) {
    return session.fail(
        invalid("--if-match needs the digest of what is to be replaced; without a "
                "condition leave it out. Nothing was changed"));
  }
  os::Fd body;
  if (const auto from = session.words().value("--from"); from && *from != "-") {
    auto opened = os::open_to_read(*from);
    if (!opened) return session.fail(invalid(cat("--from: ", opened.error().message)));
    body = std::move(*opened);
    os::FileFacts facts;
    if (os::facts_of(body.get(), facts) == 0 && facts.kind == os::FileKind::Directory) {
      return session.fail(invalid(cat("--from: ", quoted(*from), " is a directory; a whole one is ",
                                      "put in place by 'stint publish'")));
    }
  }
  constexpr int kStandardInput = 0;
  app::LazyFences fences = fences_of(session);
  const std::string path = session.words().operands().front();
  return tell(session,
              guard::write_file({.path = path,
                                 .body = {},
                                 .body_from = body ? body.get() : kStandardInput,
                                 .if_match = condition.value_or(""),
                                 .follow = session.words().has("--follow"),
                                 .want_digest = session.json()},
                                *pass, &fences),
              *pass, path);
}

int publish_command(Session& session) {
  const auto staged = session.words().value("--from");
  if (!staged) return session.fail(invalid("--from STAGED is missing: the tree to publish"));
  auto pass = pass_of(session);
  if (!pass) return session.fail(pass.error());
  app::LazyFences fences = fences_of(session);
  const std::string path = session.words().operands().front();
  return tell(session,
              guard::publish_directory(
                  {.path = path, .staged = *staged, .follow = session.words().has("--follow")},
                  *pass, &fences),
              *pass, path);
}

constexpr Option kFollow = {"--follow", "",
                            "follow symbolic links that lead out of their directory"};
constexpr std::array<Option, 8> kWriteOptions = {{
    {"--from", "BODY", "a file with the new content (default, or '-': standard input)"},
    {"--if-match", "DIGEST",
     "only if the sha256 of the present content is this ('none': only if there is no file)"},
    kResourceOption,
    kTokenOption,
    kModeOption,
    kKeyOption,
    kLiveOption,
    kFollow,
}};
constexpr std::array<Option, 7> kPublishOptions = {{
    {"--from", "STAGED", "the new tree; it is copied and left as it is"},
    kResourceOption,
    kTokenOption,
    kModeOption,
    kKeyOption,
    kLiveOption,
    kFollow,
}};
constexpr std::array<std::string_view, 3> kWriteExamples = {
    "stint run site -- bash -o pipefail -c 'make-page | stint write public/index.html'",
    "stint write state.json --from new.json --resource site --token 7",
    "stint write report.csv --from today.csv --mode once --key 2026-11-15"};
constexpr std::array<std::string_view, 1> kPublishExamples = {
    "stint run site -- sh -c './build.sh out && stint publish public --from out'"};

}  // namespace

const Command kWrite = {
    .name = "write",
    .operands = "FILE",
    .summary = "replace a file's content, unless a newer holder has sealed or written it",
    .details =
        "The check and the write are one step at the file: a writer that was frozen, however "
        "long and wherever, is refused (13) once a newer token has sealed the file, and no newer "
        "holder ever waits for it. Readers see the whole old content or the whole new one. Mode, "
        "owner and attributes of the file are kept. The fences stand beside it (.FILE.fence.N): "
        "they belong with the file, and out of backups and repositories.\n\n"
        "Read what you are about to change only after 'stint seal' or 'run --seal': a fence that "
        "is raised by the first write protects that write, not what was read before.",
    .examples = kWriteExamples,
    .options = kWriteOptions,
    .least_operands = 1,
    .most_operands = 1,
    .runs_command = false,
    .run = write_command,
};

const Command kPublish = {
    .name = "publish",
    .operands = "DIR --from STAGED",
    .summary = "replace a whole directory in one step, unless a newer holder has sealed it",
    .details =
        "STAGED is copied beside DIR, synced, and changes places with DIR in one step: whoever "
        "opens a path finds the whole old tree or the whole new one. The old tree is removed "
        "afterwards. Refused (13) once a newer token has sealed DIR, as with 'stint write'. The "
        "fences stand beside DIR (.DIR.fence.N).",
    .examples = kPublishExamples,
    .options = kPublishOptions,
    .least_operands = 1,
    .most_operands = 1,
    .runs_command = false,
    .run = publish_command,
};

}  // namespace stint::cli
