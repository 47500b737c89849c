#include "guard/landing.h"

#include <cerrno>

#include "base/text.h"
#include "os/clock.h"
#include "os/pause.h"

namespace stint::guard {
namespace {

struct Landing {
  Site& site;
  const Pass& pass;
  const Staged& staged;
  api::Fences* fences;
  const Moves& moves;
  bool marked = false;  // the stage is named by a mark: a repeat will look for it
};

// The file or tree of that inode stands in the artifact's place.
bool in_place(const Site& site, std::uint64_t inode) {
  os::FileFacts facts;
  return site.directory().facts(site.name(), facts) == 0 && facts.inode == inode;
}

// The same by the path, which a publish may have led to another folder.
bool found(const Site& site, std::uint64_t inode) {
  os::FileFacts facts;
  return os::facts_of(site.path(), facts) == 0 && facts.inode == inode;
}

// What cannot be looked at may be there.
bool seen_gone(const Site& site, const std::string& name, std::uint64_t inode) {
  os::FileFacts facts;
  const int number = site.directory().facts(name, facts);
  return number == ENOENT || (number == 0 && facts.inode != inode);
}

// The stage is gone: removed by a higher seal, as it should be, or put in place after all.
Result<WriteAnswer> stage_gone(const Landing& one, std::string_view stage, std::uint64_t inode) {
  // Only what is held open keeps its number: that of a removed file goes to the next one.
  if (stage == one.staged.name && in_place(one.site, inode))
    return Written{.digest = one.staged.digest, .already = false, .narrow = {}};
  auto allowed = may_land(one.site, one.pass, one.fences);
  if (!allowed) return allowed.error();
  if (auto* refused = std::get_if<Refused>(&*allowed)) return std::move(*refused);
  if (!one.site.narrow().empty()) {
    return Error{Code::UnknownOutcome,
                 cat("it is not known whether ", quoted(one.site.target()),
                     " was written: the network mount lost the answer. Look at it")};
  }
  return unavailable(cat("what was staged for ", quoted(one.site.target()), " as ", quoted(stage),
                         " was removed by another. Nothing was written; it can be repeated"));
}

// The rename, of which `number` is the answer, and the sync.
Status settled(const Site& site, int number) {
  if (number == EIO || number == ETIMEDOUT || number == ESTALE) {
    return Error{Code::UnknownOutcome,
                 cat("it is not known whether ", quoted(site.target()),
                     " was written: ", os::file_error("putting it in place", number).message)};
  }
  if (number != 0) {
    return os::file_error(cat("putting it in the place of ", quoted(site.path())), number);
  }
  if (auto synced = site.sync("putting it in place"); !synced) {
    return Error{Code::UnknownOutcome,
                 cat(quoted(site.target()),
                     " was written, but it is not known whether it survives a power cut: ",
                     synced.error().message)};
  }
  return {};
}

// A tree comes in place by an exchange, and the same exchange again takes it away. Whoever may do
// it again (a write of mode once and its repeats) takes turns by a lock of the staged tree itself,
// and looks whether that still stands there. The lock goes with its process; who seals does not ask
// for it. Empty: the tree is not there any more.
Result<std::optional<os::Fd>> turn_at(const Site& site, const std::string& stage,
                                      std::uint64_t inode) {
  constexpr Millis kLongest{5000};
  constexpr Millis kStep{20};
  os::Fd tree;
  os::FileFacts facts;
  int number = site.directory().open_existing(stage, tree);
  if (number == 0) number = os::facts_of(tree.get(), facts);
  if (number == ENOENT || (number == 0 && facts.inode != inode)) return std::optional<os::Fd>();
  const os::SystemClock clock;
  const MonoTime until = clock.mono() + kLongest;
  if (number == 0) number = os::try_lock(tree.get());
  while (number == EWOULDBLOCK && clock.mono() < until) {
    os::pause_for(kStep);
    number = os::try_lock(tree.get());
  }
  if (number == 0) number = site.directory().facts(stage, facts);
  if (number == ENOENT || (number == 0 && facts.inode != inode)) return std::optional<os::Fd>();
  if (number != 0) return os::file_error(cat("taking turns at ", quoted(stage)), number);
  return std::optional(std::move(tree));
}

// The last look, the rename, the sync.
Result<WriteAnswer> put_in_place(const Landing& one, const std::string& stage,
                                 std::uint64_t inode) {
  const bool again =
      one.site.kind() == Artifact::Directory && one.pass.mode == core::FenceMode::Once;
  auto turn = again ? turn_at(one.site, stage, inode)
                    : Result<std::optional<os::Fd>>(std::optional<os::Fd>(os::Fd()));
  if (!turn) return turn.error();
  if (!*turn) return stage_gone(one, stage, inode);
  auto allowed = may_land(one.site, one.pass, one.fences);
  if (!allowed) return allowed.error();
  if (auto* refused = std::get_if<Refused>(&*allowed)) return std::move(*refused);
  const int number = one.moves.put(stage);
  if (number == ENOENT) return stage_gone(one, stage, inode);
  if (auto done = settled(one.site, number); !done) return done.error();
  // It landed in a folder that a publish has put away: as if the publish had come after it.
  if (!found(one.site, inode) && !one.site.stands()) return one.site.exchanged("what was written");
  return Written{.digest = one.staged.digest, .already = false, .narrow = one.site.narrow()};
}

// The stage that a mark names is gone: put in place by a quicker one, or removed by a higher seal,
// whose fence stands then.
Result<WriteAnswer> gone_or_done(const Landing& one, Written done) {
  auto allowed = may_land(one.site, one.pass, one.fences);
  if (!allowed) return allowed.error();
  if (auto* refused = std::get_if<Refused>(&*allowed)) return std::move(*refused);
  // Whoever put it in place may have been told that its sync failed.
  if (auto synced = one.site.sync("putting it in place"); !synced) {
    return Error{Code::UnknownOutcome, synced.error().message};
  }
  return done;
}

// A mark of this token stands: it is this very write, or the token is used.
Result<WriteAnswer> repeated(const Landing& one, const UsedMark& mark) {
  const core::Fence fence{.generation = one.pass.generation,
                          .resource = one.pass.resource.text(),
                          .token = one.pass.token,
                          .used = true,
                          .key = mark.key,
                          .digest = mark.digest};
  Refused why;
  why.target = one.site.target();
  auto decision = judge_write(fence, one.pass, one.staged.digest, one.fences, &why);
  if (!decision) return decision.error();
  if (decision->verdict != core::Verdict::Done) return why;
  Written done{.digest = one.staged.digest, .already = true, .narrow = one.site.narrow()};
  if (seen_gone(one.site, mark.stage, mark.inode)) return gone_or_done(one, done);
  // It was left half-way: what was staged then is put in place now.
  auto finished = put_in_place(one, mark.stage, mark.inode);
  if (!finished || std::holds_alternative<Refused>(*finished)) {
    // Whoever began it, or another repeat, may have been quicker.
    const bool gone = !finished && seen_gone(one.site, mark.stage, mark.inode);
    if (!gone || finished.error().code == Code::UnknownOutcome) return finished;
    auto sure = gone_or_done(one, done);
    if (!sure || std::holds_alternative<Refused>(*sure)) return sure;
  }
  if (one.site.kind() == Artifact::Directory) one.site.drop(mark.stage);  // the former tree
  return done;
}

Result<std::optional<Refused>> condition_of(const Landing& one) {
  if (!one.moves.condition) return std::optional<Refused>();
  return one.moves.condition();
}

// REQUIRES: an error or a refusal.
Result<WriteAnswer> answer_of(Result<std::optional<Refused>>& refused) {
  if (!refused) return refused.error();
  return std::move(**refused);
}

Result<WriteAnswer> land_once(Landing& one) {
  auto mark = one.site.read_used(one.pass);
  if (!mark) return mark.error();
  if (*mark) return repeated(one, **mark);
  if (auto refused = condition_of(one); !refused || *refused) return answer_of(refused);
  // The stage is durable before the mark that names it, the mark before the write.
  if (auto synced = one.site.sync("staging"); !synced) return synced.error();
  const core::Offer offer = offer_of(one.pass, one.staged.digest);
  const std::string name = used_name(one.site.name(), one.pass.token, one.pass.generation);
  const UsedMark made{one.pass.generation, one.pass.token,  offer.key,
                      offer.digest,        one.staged.name, one.staged.inode};
  auto number = one.site.make(name, used_text(made), one.pass);
  // An I/O error does not say that the mark is not there. If it is, and its stage were taken away,
  // a repeat would take the write for done.
  one.marked = !number;
  if (!number) return number.error();
  if (*number == EEXIST) {
    auto other = one.site.read_used(one.pass);
    if (!other) return other.error();
    if (*other && (*other)->stage != one.staged.name) return repeated(one, **other);
    if (*other) *number = 0;  // it is this one's: the answer to it was lost
  }
  if (*number != 0) return stage_gone(one, one.staged.name, one.staged.inode);
  one.marked = true;
  if (auto synced = one.site.sync("marking the token as used"); !synced) return synced.error();
  auto landed = put_in_place(one, one.staged.name, one.staged.inode);
  // A repeat found the mark, and finished it before this one came to it.
  if (!landed && landed.error().code == Code::Unavailable &&
      seen_gone(one.site, one.staged.name, one.staged.inode)) {
    return gone_or_done(
        one, Written{.digest = one.staged.digest, .already = false, .narrow = one.site.narrow()});
  }
  return landed;
}

}  // namespace

bool let_through(const Refused& refusal, const Pass& pass) {
  return pass.warn && !pass.require_live && refusal.condition == Condition::None;
}

Result<WriteAnswer> past_the_fence(Site& site, const Staged& staged, const Moves& moves,
                                   Refused refusal) {
  if (moves.condition) {
    auto unmet = moves.condition();
    if (!unmet || *unmet) {
      site.drop(staged.name);
      return answer_of(unmet);
    }
  }
  const int number = moves.put(staged.name);
  if (number == ENOENT) return refusal;
  if (auto done = settled(site, number); !done) {
    if (done.error().code != Code::UnknownOutcome) site.drop(staged.name);
    return done.error();
  }
  refusal.warned = true;
  return Written{.digest = staged.digest,
                 .already = false,
                 .narrow = site.narrow(),
                 .warned = std::move(refusal)};
}

Status check_key(const Pass& pass) {
  constexpr std::size_t kMostKeyBytes = 512;
  if (pass.key.size() > kMostKeyBytes || !is_utf8(pass.key) || has_control(pass.key)) {
    return invalid(cat("the key must be text of at most ", kMostKeyBytes,
                       " bytes without control characters"));
  }
  return {};
}

Result<WriteAnswer> not_staged(Site& site, const Pass& pass, api::Fences* fences,
                               const Error& why) {
  if (!site.stands()) return site.exchanged("what was to be staged");
  auto allowed = may_land(site, pass, fences);
  if (!allowed) return why;
  if (auto* refused = std::get_if<Refused>(&*allowed)) return std::move(*refused);
  return why;
}

Result<WriteAnswer> land(Site& site, const Pass& pass, const Staged& staged, api::Fences* fences,
                         const Moves& moves) {
  Landing one{site, pass, staged, fences, moves};
  const auto try_to = [&]() -> Result<WriteAnswer> {
    auto live = is_live(site, pass, fences);
    if (!live) return live.error();
    if (auto* refused = std::get_if<Refused>(&*live)) return std::move(*refused);
    if (pass.mode == core::FenceMode::Once) return land_once(one);
    if (auto refused = condition_of(one); !refused || *refused) return answer_of(refused);
    return put_in_place(one, staged.name, staged.inode);
  };
  auto answer = try_to();
  if (auto* refused = answer ? std::get_if<Refused>(&*answer) : nullptr;
      refused != nullptr && let_through(*refused, pass)) {
    answer = past_the_fence(site, staged, moves, std::move(*refused));
  }
  const bool landed =
      answer && std::holds_alternative<Written>(*answer) && !std::get<Written>(*answer).already;
  const bool unknown = !answer && answer.error().code == Code::UnknownOutcome;
  if (!landed && !unknown && !one.marked) site.drop(staged.name);
  return answer;
}

}  // namespace stint::guard
