// Who holds a lease in the simulation, and what runs under it.
#include "app/guards.h"
#include "base/text.h"
#include "holder/run.h"
#include "tests/sim/sim_site.h"

namespace stint::test {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

// What is edited under the lease of that name.
std::string file_of(std::string_view resource) { return cat("f", resource.substr(1)); }

}  // namespace

void SimSite::make_artifacts() {
  for (std::size_t i = 0; i < plan_.kinds.size(); ++i) {
    const std::string file = cat("f", i);
    std::unique_ptr<SimArtifact>& artifact = artifacts_[file];
    switch (plan_.kinds[i]) {
      case SimKind::File: artifact = make_file(disk_, file); break;
      case SimKind::Tree: artifact = make_tree(disk_, file); break;
      case SimKind::Row:
        if (!sql_) sql_.emplace();
        artifact = make_row(scheduler_, *sql_, file);
        break;
      case SimKind::Text: artifact = make_text(file); break;
      case SimKind::Branch:
        git_.emplace(scheduler_, tally_, nowhere_);
        artifact = make_branch(scheduler_, *git_, file);
        break;
    }
  }
  if (sql_) {
    sql_->on_commit(
        [this](const std::string& name, const std::string& body) { on_sql_commit(name, body); });
  }
  if (git_) {
    if (options_.blind_git) git_->compare_nothing();
    git_->on_move([this](const std::string& ref, const std::string& text) { on_ref(ref, text); });
  }
  net_.on_write(
      [this](const net::http::RequestHead& head, const std::string& body) { on_text(head, body); });
}

// ---- holders

void SimSite::hold() {
  auto office = open_office();
  if (!office) return;
  auto signals = os::Signals::make();
  while (scheduler_.alive()) {
    hold_once(*office, *signals);
    scheduler_.interleave(up_to(seconds(90)));
  }
}

// What somebody who holds asks for.
holder::RunRequest SimSite::any_run(const std::string& name, const std::string& resource) {
  holder::RunRequest request;
  request.resources = {ResourceName::parse(resource).value()};
  request.owner = Owner::parse(name).value();
  request.terms.ttl = seconds(10) + up_to(seconds(50));
  if (random().below(6) == 0) request.terms.max_hold = request.terms.ttl + up_to(minutes(2));
  if (random().below(8) == 0) request.terms.at_least = request.terms.ttl / 2;
  if (random().below(8) == 0) request.terms.cooldown = up_to(seconds(20));
  request.settings = {.ttl = request.terms.ttl,
                      .grace = core::default_grace(request.terms.ttl),
                      .margin = core::default_margin(request.terms.ttl),
                      .max_hold = request.terms.max_hold};
  request.held.what = random().below(4) == 0 ? holder::OnHeld::Skip : holder::OnHeld::Wait;
  request.held.patience = minutes(10);
  request.restart = random().below(6) == 0;
  request.command = {"edit"};
  return request;
}

std::vector<holder::SealStep> SimSite::seals(SimOffice& office, const guard::Pass& pass) {
  const std::string file = file_of(pass.resource.text());
  const std::string words = artifacts_.at(file)->words();
  std::vector<std::string> targets = {cat("admit:a", file.substr(1))};
  if (!words.empty()) targets.insert(targets.begin(), words);
  std::vector<holder::SealStep> steps;
  steps.emplace_back([&office, pass, targets]() -> Status {
    auto verdict = office.fences.remember(guard::offer_of(pass, ""), targets);
    if (!verdict) return verdict.error();
    if (guard::is_refusal(*verdict)) return Error{Code::Stale, "superseded"};
    return {};
  });
  if (words.empty()) {
    steps.emplace_back([this, &office, pass, file] { return seal_by_hand(office, pass, file); });
  }
  for (const std::string& target : targets) {
    steps.emplace_back(
        [this, &office, pass, target, file] { return seal_by_words(office, pass, target, file); });
  }
  return steps;
}

Status SimSite::seal_by_words(SimOffice& office, const guard::Pass& pass, const std::string& target,
                              const std::string& file) {
  const auto seal = [&](std::optional<guard::SealRequest::Adoption> adopt) {
    return app::seal_target(app::guards(), target,
                            {.pass = pass, .by_order = false, .adopt = std::move(adopt)},
                            office.fences, office.ledger, scheduler_.process()->clock());
  };
  auto report = seal({});
  // A backup that was put back again and again: in the end an operator adopts the target.
  if (calm_ && report.error.code == Code::Foreign) report = seal({{"drill", "operator"}});
  note(cat("seal ", target, " with ", pass.token.number(), ": ", static_cast<int>(report.outcome)));
  if (report.outcome != app::SealReport::Outcome::Sealed) return report.error;
  if (!target.starts_with("admit:") && scheduler_.alive()) laws_->seal_told(file, pass.token);
  return {};
}

// What no words of ours name: the command's own library does it.
Status SimSite::seal_by_hand(SimOffice& office, const guard::Pass& pass, const std::string& file) {
  SimArtifact& artifact = *artifacts_.at(file);
  auto answer = artifact.seal(pass, office.fences);
  const auto foreign = [&] {
    const auto* why = answer ? std::get_if<guard::Refused>(&*answer) : nullptr;
    return why != nullptr && why->verdict == core::Verdict::Foreign;
  };
  if (calm_ && foreign()) {
    artifact.adopt();
    answer = artifact.seal(pass, office.fences);
  }
  const bool sealed = answer && std::holds_alternative<guard::Sealed>(*answer);
  note(cat("seal ", file, " with ", pass.token.number(), ": ", sealed ? "sealed" : "not sealed"));
  if (!answer) return answer.error();
  if (!sealed) return Error{Code::Stale, "refused"};
  if (scheduler_.alive()) laws_->seal_told(file, pass.token);
  return {};
}

void SimSite::hold_once(SimOffice& office, os::Signals& signals) {
  const SimProcess& process = *scheduler_.process();
  const std::string name = process.name;
  const std::string resource = cat("r", calm_ ? turns_++ % 2 : random().below(2));
  const holder::RunRequest request = any_run(name, resource);
  Token token;
  const auto trust = [&](MonoTime deadline) {
    if (!scheduler_.alive()) return;
    const MonoTime dead = deadline + request.settings.grace + request.settings.margin;
    laws_->trusts(name, resource, token, process.clock().true_time(dead));
  };
  holder::RunHooks hooks;
  hooks.seals = [&](const holder::Taken& taken) -> Result<std::vector<holder::SealStep>> {
    if (options_.without_seal) return std::vector<holder::SealStep>{};
    return seals(office, {.resource = request.resources.front(),
                          .token = taken.kept.front().grip.token,
                          .generation = office.leases.generation(),
                          .claim = taken.kept.front().grip.claim,
                          .owner = request.owner});
  };
  hooks.environment = [&](const holder::Taken& taken,
                          MonoTime deadline) -> Result<std::vector<std::string>> {
    token = taken.kept.front().grip.token;
    trust(deadline);
    return std::vector<std::string>{resource,
                                    std::to_string(token.number()),
                                    office.leases.generation().hex(),
                                    taken.kept.front().grip.claim.hex(),
                                    name,
                                    std::to_string(request.terms.ttl.count())};
  };
  hooks.deadline_moved = trust;
  hooks.ended = [&](const holder::Taken&, const holder::RunEnd& end) {
    laws_->trusts_nothing(name);
    note(cat(name, " ends ", resource, ' ', token.number(), ": ", static_cast<int>(end.how)));
  };
  hooks.say = [](const std::string&) {};
  hooks.waiting = [](const api::Refused&) {};
  const auto answer =
      holder::run(office.leases, office.ledger, process.clock(), random(), signals, request, hooks);
  laws_->trusts_nothing(name);
  note(cat(name, " ran ", resource, ": ",
           !answer             ? word(answer.error().code)
           : answer->waved_off ? "waved off"
                               : "done"));
}

// ---- what they run: reads a file, thinks, writes it

int SimSite::edit(const std::vector<std::string>& environment, bool escaped) {
  const SimProcess& process = *scheduler_.process();
  const std::string name = process.name;
  guard::Pass pass{.resource = ResourceName::parse(environment[0]).value(),
                   .token = Token::parse(environment[1]).value(),
                   .generation = Generation::parse(environment[2]).value(),
                   .claim = Claim::parse(environment[3]).value(),
                   .owner = Owner::parse(environment[4]).value()};
  const Millis ttl(static_cast<std::int64_t>(*parse_digits(environment[5])));
  pass.warn = options_.warn;
  if (options_.forged_tokens) pass.token = Token(pass.token.number() + 1);
  if (random().below(4) == 0) {
    pass.mode = core::FenceMode::Once;
    pass.key = random().id_hex();
  }
  if (!escaped) laws_->works(name, environment[0], pass.token);
  service::FenceService fences(*store_, process.clock());
  const std::string file = file_of(environment[0]);
  const std::uint64_t rounds = 1 + random().below(escaped ? 12 : 6);
  bool goes_on = true;
  for (std::uint64_t i = 0; i < rounds && goes_on && scheduler_.alive(); ++i) {
    bool written = false;
    goes_on = edit_once(pass, file, fences, written);
    if (scheduler_.alive()) scheduler_.interleave(up_to(ttl));
    // A second one of mode once is refused; one that came to nothing is not tried again here.
    if (pass.mode == core::FenceMode::Once && !written) break;
  }
  if (!escaped) laws_->works_no_more(name);
  return goes_on ? 0 : 13;
}

bool SimSite::edit_once(const guard::Pass& pass, const std::string& file, api::Fences& fences,
                        bool& written) {
  SimArtifact& artifact = *artifacts_.at(file);
  const auto found = artifact.read();
  if (!found || !scheduler_.alive()) return true;
  const std::string before = found->value_or("");
  if (*found) laws_->seen(file, before);
  const std::uint64_t version = parse_digits(before.substr(0, before.find(' '))).value_or(0) + 1;
  scheduler_.interleave(up_to(seconds(20)));
  const bool once = pass.mode == core::FenceMode::Once;
  std::string body = cat(version, ' ', pass.token.number(), ' ', pass.owner.text(), ' ');
  body += once ? cat("once ", pass.key) : random().id_hex();
  if (random().below(3) == 0) {
    const auto gate = fences.admit(cat("admit:a", file.substr(1)), guard::offer_of(pass, ""));
    note(cat("admit: ", gate ? static_cast<int>(gate->verdict) : -1));
  }
  const int most = once && !artifact.overtakes() ? 3 : 1;
  for (int tries = 0; tries < most && scheduler_.alive(); ++tries) {
    const auto answer = artifact.write(pass, body, fences);
    if (!scheduler_.alive()) return false;
    note(cat(scheduler_.process()->name, " writes ", body, ": ",
             !answer                                           ? word(answer.error().code)
             : std::holds_alternative<guard::Written>(*answer) ? "written"
                                                               : "refused"));
    if (answer && std::holds_alternative<guard::Written>(*answer)) {
      laws_->write_told(file, body, version);
      written = true;
      return true;
    }
    if (answer) {
      // A use is no fence: where a backup made a token come twice, its second holder may write.
      const bool used = std::get<guard::Refused>(*answer).verdict == core::Verdict::Used;
      if (!used) laws_->fenced(file, pass.token);
      if (!once) laws_->write_refused(file, body);
      return false;
    }
    const bool unknown = answer.error().code == Code::UnknownOutcome;
    if (!once && !unknown) laws_->write_refused(file, body);
    if (unknown && artifact.overtakes()) return false;
    scheduler_.interleave(up_to(seconds(5)));
  }
  return true;
}

}  // namespace stint::test
