// stint queue: its verbs in one table.
#include "cli/queue.h"

#include <algorithm>
#include <array>

#include "api/queue_json.h"
#include "api/words.h"
#include "app/job_file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"

namespace stint::cli {
namespace {

struct QueueVerb {
  std::string_view name;
  std::string_view usage;
  int (*run)(Session& session);
  std::size_t least;  // operands, its own name included
  std::size_t most;
};
constexpr std::array<QueueVerb, 15> kQueueVerbs = {{
    {"put", "put QUEUE [PAYLOAD|-] [--create]", queue_put, 2, 3},
    {"claim", "claim QUEUE [--ttl D]", queue_claim, 2, 2},
    {"ls", "ls [QUEUE]", queue_ls, 1, 2},
    {"show", "show ID", queue_show, 1, 2},
    {"renew", "renew ID --epoch N", queue_renew, 1, 2},
    {"complete", "complete ID --epoch N", queue_complete, 1, 2},
    {"fail", "fail ID --epoch N", queue_fail, 1, 2},
    {"release", "release ID --epoch N", queue_release, 1, 2},
    {"checkpoint", "checkpoint ID [MARKER] --epoch N", queue_checkpoint, 1, 3},
    {"park", "park ID --why TEXT [--epoch N]", queue_order, 2, 2},
    {"requeue", "requeue ID --why TEXT [--epoch N]", queue_order, 2, 2},
    {"reassign", "reassign ID [--to OWNER] --why TEXT [--epoch N]", queue_order, 2, 2},
    {"cancel", "cancel ID --why TEXT [--epoch N]", queue_order, 2, 2},
    {"replay", "replay ID --why TEXT", queue_order, 2, 2},
    {"drop", "drop ID --why TEXT [--epoch N]", queue_order, 2, 2},
}};

int queue_command(Session& session) {
  const auto& operands = session.words().operands();
  std::string names;
  for (const QueueVerb& verb : kQueueVerbs) {
    names += cat(names.empty() ? "" : ", ", verb.name);
    if (operands.front() != verb.name) continue;
    if (operands.size() < verb.least) {
      return session.fail(invalid(cat("something is missing: stint queue ", verb.usage)));
    }
    if (operands.size() > verb.most) {
      return session.fail(invalid(cat("too many words: stint queue ", verb.usage)));
    }
    return verb.run(session);
  }
  return session.fail(
      invalid(cat("there is no stint queue ", quoted(operands.front()), "; there are ", names)));
}

constexpr std::array<Option, 26> kQueueOptions = {{
    {"--create", "", "put: make the queue if it is not there, with the limits given here"},
    {"--file", "FILE", "put: the payload is what stands in this file (at most 64 KiB)"},
    {"--check-json", "", "put: refuse a payload that is not JSON"},
    {"--priority", "N", "put: from -100 to 100, the highest first (default 0)"},
    {"--not-before", "D", "put: nobody may claim it before this long from now"},
    {"--unique", "KEY", "put: if an item of the queue has this key, that one's id is printed"},
    {"--label", "TEXT", "put: a label, for people", true},
    {"--max-attempts", "N", "put: how often it may be tried (default 3)"},
    {"--claim-ttl", "D", "put: how long a claim of it lasts (default 90s)"},
    {"--progress-timeout", "D", "put: a claim without progress for this long ends"},
    {"--requeue", "WHEN",
     "put: never, if-no-progress (default) or always: whether it is run again when its worker is "
     "gone"},
    {"--backoff", "D", "put: the wait after the first failure, doubled with each (default 1s)"},
    {"--backoff-max", "D", "put: the longest of these waits (default 10m)"},
    {"--ttl", "D", "claim, renew: how long the claim lasts from now"},
    {"--started", "", "claim: the work counts as started at once"},
    {"--epoch", "N", "the epoch that claim gave; for an operator's verb: the one that is expected"},
    {"--queue", "QUEUE", "refuse an id of another queue"},
    {"--result", "FILE", "complete: the result, at most 64 KiB; '-' is standard input"},
    {"--then", "QUEUE:PAYLOAD", "complete: put this in the same step, at most 50 times", true},
    {"--data", "FILE", "checkpoint: what the next claimant receives; '-' is standard input"},
    {"--later", "D", "fail: try again after this long, without using up an attempt"},
    {"--why", "TEXT", "fail, and the operator's verbs: goes on record"},
    {"--by", "WHO", "the operator's verbs: on whose word (default: the user's name)"},
    {"--to", "OWNER", "reassign: only this owner may claim it for a while"},
    {"--state", "STATE", "ls: only waiting, claimed, parked, failed, cancelled or done ones"},
    {"--limit", "N", "ls: at most so many (default 1000)"},
}};
constexpr std::array<std::string_view, 6> kQueueExamples = {
    "stint queue put builds '{\"commit\": \"4f2a\"}' --create",
    "stint queue claim builds --ttl 5m --json",
    "stint queue complete ID --epoch 1 --result out.txt --then deploys:4f2a",
    "stint queue checkpoint ID 'page 40' --epoch 1 --data state.json",
    "stint queue requeue ID --why 'the disk was full'",
    "stint queue ls builds --state parked"};

}  // namespace

Result<core::ItemId> item_id(Session& session) {
  const auto& operands = session.words().operands();
  const auto inherited = session.environment().get("STINT_ITEM");
  if (operands.size() < 2 && !inherited) {
    return invalid("which item? Name its id (inside 'stint work' it is known)");
  }
  auto id = core::ItemId::parse(operands.size() < 2 ? *inherited : operands[1]);
  if (!id) return id.error();
  if (const auto queue = session.words().value("--queue"); queue && *queue != id->queue().text()) {
    return invalid(cat(quoted(id->text()), " is an item of the queue ", quoted(id->queue().text()),
                       ", not of ", quoted(*queue)));
  }
  return id;
}

Result<api::ItemRef> item_ref(Session& session) {
  auto id = item_id(session);
  if (!id) return id.error();
  auto text = session.words().value("--epoch");
  if (!text && session.environment().get("STINT_ITEM") == id->text()) {
    text = session.environment().get("STINT_EPOCH");
  }
  if (!text) return invalid("--epoch N is missing: the number that 'stint queue claim' gave");
  auto epoch = Token::parse(*text);
  if (!epoch) return invalid(cat("--epoch: ", epoch.error().message));
  api::ItemRef ref{*id, *epoch};
  if (auto ok = api::check_ref(ref); !ok) return ok.error();
  return ref;
}

Result<api::Queue*> open_queue(Session& session) {
  auto opened = session.open();
  if (!opened) return opened.error();
  return (*opened)->queue();
}

Result<std::vector<api::QueueConfig>> declared_queues(Session& session) {
  std::vector<api::QueueConfig> declared;
  // Without queues in it the file is none of our business, nor is the store that it names.
  if (auto file = app::find_job_file(session.environment(), std::nullopt); file) {
    auto config = app::load_job_file(session.environment(), file->path);
    if (!config) return config.error();
    declared = config->queues;
    if (config->store && !declared.empty()) session.use_jobs_store(*config->store, *file);
  }
  auto settings = session.settings();
  if (!settings) return settings.error();
  declared.insert(declared.end(), (*settings)->queues.begin(), (*settings)->queues.end());
  return declared;
}

Result<api::Queue*> open_declared_queue(Session& session, const core::QueueName& name,
                                        const std::vector<api::QueueConfig>& declared) {
  auto queue = open_queue(session);
  if (!queue) return queue.error();
  const auto mine = std::ranges::find(declared, name, &api::QueueConfig::name);
  if (mine == declared.end()) return queue;
  if (auto made = api::declare_queues(**queue, {*mine}); !made) return made.error();
  return queue;
}

int tell(Session& session, const Result<api::ItemAnswer>& answer, Token offered) {
  if (!answer) return session.fail(answer.error());
  if (const auto* lost = std::get_if<api::ItemLost>(&*answer)) {
    auto id = item_id(session);
    const Error error{Code::Lost, id ? api::describe_loss(*lost, *id, offered) : "lost"};
    if (session.json()) {
      session.complain(api::to_json(error, *lost));
    } else {
      session.warn(error.message);
    }
    return kLost;
  }
  const auto& done = std::get<api::ItemDone>(*answer);
  if (done.repeated) session.say("this was done before");
  if (session.json()) session.print(api::to_json(done));
  return kDone;
}

const Command kQueue = {
    .name = "queue",
    .operands = "VERB [QUEUE|ID] [options]",
    .summary = "put, claim and finish items of work; every verb is fenced by the claim's epoch",
    .details =
        "put prints the item's id. claim prints the payload (with --json also id, epoch, "
        "checkpoint "
        "and the rest) and exits 3 when there is nothing to claim. renew, complete, fail, release "
        "and "
        "checkpoint need the epoch of the claim: when somebody has claimed the item since, or an "
        "operator has moved it, they change nothing and exit 12. A repeat of what was done is "
        "answered 0.\n\n"
        "What becomes of an item whose worker is gone is the item's own rule, --requeue: by "
        "default "
        "it is run again only if it was never started, or if its worker declared that it reports "
        "progress and reported none. Everything else is parked for a person: the work may have "
        "been "
        "half done. A late result counts as long as nobody has claimed the item again.\n\n"
        "park, requeue, reassign, cancel, replay and drop are for operators: they need a --why, "
        "and "
        "the epoch while a claim is live. A cancelled claim's worker is stopped at once. Only "
        "replay "
        "opens an item that is done.",
    .examples = kQueueExamples,
    .options = kQueueOptions,
    .least_operands = 1,
    .most_operands = 4,
    .runs_command = false,
    .run = queue_command,
    .verbs =
        "put claim ls show renew complete fail release checkpoint park requeue reassign cancel "
        "replay drop",
};

}  // namespace stint::cli
