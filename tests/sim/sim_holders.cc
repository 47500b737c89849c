// Who holds a lease in the simulation, and what runs under it.
#include "app/guards.h"
#include "base/text.h"
#include "guard/directory_guard.h"
#include "guard/file_guard.h"
#include "guard/targets.h"
#include "holder/run.h"
#include "tests/sim/sim_site.h"

namespace stint::test {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

std::string path_of(const std::string& file) { return cat(SimDisk::kDirectory, '/', file); }

// What is edited under the lease of that name: one artifact is a file, the other one a tree.
std::string file_of(std::string_view resource) { return cat("f", resource.substr(1)); }
bool is_tree(const std::string& file) { return file == "f1"; }

}  // namespace

guard::Guards site_guards() {
  guard::Guards out;
  out[guard::TargetKind::File].seal = [](const guard::Target& target,
                                         const guard::SealRequest& request, api::Fences* fences) {
    return guard::seal_file(target.place, request, fences);
  };
  out[guard::TargetKind::Directory].seal =
      [](const guard::Target& target, const guard::SealRequest& request, api::Fences* fences) {
        return guard::seal_directory(target.place, request, fences);
      };
  out[guard::TargetKind::Admit] = guard::store_guard();
  return out;
}

bool on_disk(const std::string& target) { return !target.starts_with("admit:"); }

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
  const std::vector<std::string> targets = {cat(is_tree(file) ? "dir:" : "file:", path_of(file)),
                                            cat("admit:a", file.substr(1))};
  std::vector<holder::SealStep> steps;
  steps.emplace_back([&office, pass, targets]() -> Status {
    auto verdict = office.fences.remember(guard::offer_of(pass, ""), targets);
    if (!verdict) return verdict.error();
    if (guard::is_refusal(*verdict)) return Error{Code::Stale, "superseded"};
    return {};
  });
  for (const std::string& target : targets) {
    steps.emplace_back([this, &office, pass, target, file]() -> Status {
      const auto seal = [&](std::optional<guard::SealRequest::Adoption> adopt) {
        return app::seal_target(site_guards(), target,
                                {.pass = pass, .by_order = false, .adopt = std::move(adopt)},
                                office.fences, office.ledger, scheduler_.process()->clock());
      };
      auto report = seal({});
      // A backup that was put back again and again: in the end an operator adopts the target.
      if (calm_ && report.error.code == Code::Foreign) report = seal({{"drill", "operator"}});
      note(cat("seal ", target, " with ", pass.token.number(), ": ",
               static_cast<int>(report.outcome)));
      if (report.outcome != app::SealReport::Outcome::Sealed) return report.error;
      if (on_disk(target) && scheduler_.alive()) laws_->seal_told(file, pass.token);
      return {};
    });
  }
  return steps;
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
    goes_on = edit_once(pass, file, fences);
    if (scheduler_.alive()) scheduler_.interleave(up_to(ttl));
    if (pass.mode == core::FenceMode::Once) break;
  }
  if (!escaped) laws_->works_no_more(name);
  return goes_on ? 0 : 13;
}

Result<guard::WriteAnswer> SimSite::write_under_guard(const guard::Pass& pass,
                                                      const std::string& file,
                                                      const std::string& body,
                                                      api::Fences& fences) {
  if (!is_tree(file)) {
    return guard::write_file({.path = path_of(file), .body = body}, pass, &fences);
  }
  const std::string staged = disk_.prepare(body);
  auto answer = guard::publish_directory({.path = path_of(file), .staged = staged}, pass, &fences);
  disk_.put_away(staged);
  return answer;
}

bool SimSite::edit_once(const guard::Pass& pass, const std::string& file, api::Fences& fences) {
  std::string before;
  std::uint64_t inode = 0;
  const int failed = disk_.read(file, before, inode);
  if (failed != 0 && failed != ENOENT) return true;
  if (failed == 0) laws_->seen(file, before);
  const std::uint64_t version = parse_digits(before.substr(0, before.find(' '))).value_or(0) + 1;
  scheduler_.interleave(up_to(seconds(20)));
  const bool once = pass.mode == core::FenceMode::Once;
  std::string body = cat(version, ' ', pass.token.number(), ' ', pass.owner.text(), ' ');
  body += once ? cat("once ", pass.key) : random().id_hex();
  if (random().below(3) == 0) {
    const auto gate = fences.admit(cat("admit:a", file.substr(1)), guard::offer_of(pass, ""));
    note(cat("admit: ", gate ? static_cast<int>(gate->verdict) : -1));
  }
  for (int tries = 0; tries < (once ? 3 : 1) && scheduler_.alive(); ++tries) {
    const auto answer = write_under_guard(pass, file, body, fences);
    if (!scheduler_.alive()) return false;
    note(cat(scheduler_.process()->name, " writes ", body, ": ",
             !answer                                           ? word(answer.error().code)
             : std::holds_alternative<guard::Written>(*answer) ? "written"
                                                               : "refused"));
    if (answer && std::holds_alternative<guard::Written>(*answer)) {
      laws_->write_told(file, body, version);
      return true;
    }
    if (answer) {
      laws_->fenced(file, pass.token);
      if (!once) laws_->write_refused(file, body);
      return false;
    }
    if (!once && answer.error().code != Code::UnknownOutcome) laws_->write_refused(file, body);
    scheduler_.interleave(up_to(seconds(5)));
  }
  return true;
}

}  // namespace stint::test
