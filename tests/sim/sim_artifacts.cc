#include "tests/sim/sim_artifacts.h"

#include <cerrno>

#include "base/sha256.h"
#include "base/text.h"
#include "guard/directory_guard.h"
#include "guard/file_guard.h"
#include "guard/git_guard.h"
#include "net/http_client.h"
#include "os/clock.h"
#include "tests/sim/sim_net.h"

namespace stint::test {

using guard::Pass;
using guard::WriteAnswer;
using std::chrono::seconds;

Result<guard::SealAnswer> SimArtifact::seal(const Pass& /*pass*/, api::Fences& /*fences*/) {
  return invalid("it is sealed by its words");
}

namespace {

// ---- on the disk

class OnDisk : public SimArtifact {
 public:
  OnDisk(SimDisk& disk, std::string name) : disk_(disk), name_(std::move(name)) {}
  Result<std::optional<std::string>> read() override {
    std::string text;
    std::uint64_t inode = 0;
    const int failed = disk_.read(name_, text, inode);
    if (failed == ENOENT) return std::optional<std::string>();
    if (failed != 0) return unavailable("the disk");
    return std::optional(std::move(text));
  }

 protected:
  std::string path() const { return cat(SimDisk::kDirectory, '/', name_); }
  SimDisk& disk() { return disk_; }

 private:
  SimDisk& disk_;
  const std::string name_;
};

class SimFile final : public OnDisk {
 public:
  using OnDisk::OnDisk;
  std::string words() const override { return cat("file:", path()); }
  Result<WriteAnswer> write(const Pass& pass, const std::string& body,
                            api::Fences& fences) override {
    return guard::write_file({.path = path(), .body = body}, pass, &fences);
  }
};

class SimTree final : public OnDisk {
 public:
  using OnDisk::OnDisk;
  std::string words() const override { return cat("dir:", path()); }
  Result<WriteAnswer> write(const Pass& pass, const std::string& body,
                            api::Fences& fences) override {
    const std::string staged = disk().prepare(body);
    auto answer = guard::publish_directory({.path = path(), .staged = staged}, pass, &fences);
    disk().put_away(staged);
    return answer;
  }
};

// ---- in a SQLite database

class SimRow final : public SimArtifact {
 public:
  SimRow(Scheduler& scheduler, SimSql& sql, std::string name)
      : scheduler_(scheduler), sql_(sql), name_(std::move(name)) {}

  Result<guard::SealAnswer> seal(const Pass& pass, api::Fences& fences) override {
    auto verdict = waiting<Result<guard::SqliteVerdict>>(
        [&]() -> Result<guard::SqliteVerdict> {
          const SimSql::Connection db;
          auto sealed = guard::seal_sqlite(SimSql::calls(), db.get(), pass, fences);
          if (sealed && std::holds_alternative<guard::SqliteLet>(*sealed)) sql_.committed("", "");
          return sealed;
        },
        [](const auto& answer) { return !answer && answer.error().code == Code::Unavailable; });
    if (!verdict) return verdict.error();
    if (auto* why = std::get_if<guard::Refused>(&*verdict)) {
      return guard::SealAnswer(std::move(*why));
    }
    return guard::SealAnswer(guard::Sealed{});
  }
  // There is no verb for it: whoever runs the database takes the row away.
  void adopt() override { sql_.forget_fences(); }

  Result<std::optional<std::string>> read() override {
    SimSql::Connection db;
    std::string text;
    const int code =
        waiting<int>([&] { return db.ask("SELECT body FROM texts WHERE name = ?1", name_, text); },
                     [](int answer) { return answer == SQLITE_BUSY; });
    if (code == SQLITE_DONE) return std::optional<std::string>();
    if (code != SQLITE_ROW) return unavailable("the database is busy");
    return std::optional(std::move(text));
  }

  Result<WriteAnswer> write(const Pass& pass, const std::string& body,
                            api::Fences& fences) override {
    SimSql::Connection db;
    // A deferred one has no lock yet: the guard takes it.
    const char* begin = scheduler_.random().below(2) == 0 ? "BEGIN" : "BEGIN IMMEDIATE";
    const int begun = waiting<int>([&] { return db.run(begin); },
                                   [](int answer) { return answer == SQLITE_BUSY; });
    if (begun != SQLITE_DONE) return unavailable("the database is busy");
    auto verdict =
        guard::admit_sqlite(SimSql::calls(), db.get(), pass, to_hex(sha256(body)), &fences);
    if (!verdict) return verdict.error();  // rolled back with the connection
    if (auto* why = std::get_if<guard::Refused>(&*verdict)) return WriteAnswer(std::move(*why));
    const bool already = std::get<guard::SqliteLet>(*verdict).already;
    pause(seconds(5));
    if (!scheduler_.alive()) return unavailable("killed");
    if (!already) {
      db.run("INSERT INTO texts VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET body = ?2", name_,
             body);
    }
    pause(Millis(100));
    if (!scheduler_.alive()) return unavailable("killed");
    if (db.run("COMMIT") != SQLITE_DONE) return unavailable("the database is busy");
    if (!already) sql_.committed(name_, body);
    pause(Millis(100));
    return WriteAnswer(guard::Written{.digest = {}, .already = already});
  }

 private:
  void pause(Millis most) {
    const auto nanos = static_cast<std::uint64_t>(Nanos(most).count());
    scheduler_.interleave(Nanos(1 + scheduler_.random().below(nanos)));
  }
  // One writer at a time: the others ask again for a while.
  template <typename Answer>
  Answer waiting(const std::function<Answer()>& ask,
                 const std::function<bool(const Answer&)>& busy) {
    constexpr int kMostAsked = 20;
    pause(Millis(2));
    Answer answer = ask();
    for (int i = 0; i < kMostAsked && busy(answer) && scheduler_.alive(); ++i) {
      pause(seconds(3));
      if (scheduler_.alive()) answer = ask();
    }
    return answer;
  }

  Scheduler& scheduler_;
  SimSql& sql_;
  const std::string name_;
};

// ---- at a git server

class SimBranch final : public SimArtifact {
 public:
  SimBranch(Scheduler& scheduler, SimGit& git, std::string name)
      : scheduler_(scheduler), git_(git), name_(std::move(name)) {}
  std::string words() const override { return cat("git:", SimGit::kUrl, "#", branch()); }

  Result<std::optional<std::string>> read() override {
    auto tip = git_.fetch(branch());
    if (!tip) return tip.error();
    fetched_[scheduler_.process()] = tip->oid;
    if (tip->oid.empty()) return std::optional<std::string>();
    return std::optional(std::move(tip->text));
  }

  Result<WriteAnswer> write(const Pass& pass, const std::string& body,
                            api::Fences& fences) override {
    auto target = guard::parse_git_target(cat("git:origin/", name_));
    if (!target) return target.error();
    guard::GitPush push{.pass = pass,
                        .target = *target,
                        .source = git_.commit(fetched_[scheduler_.process()], body),
                        .fences = [&fences] { return Result<api::Fences*>(&fences); },
                        .tell = {}};
    auto pushed = guard::push_git(push);
    if (!pushed) return pushed.error();
    return std::move(pushed->answer);
  }

 private:
  std::string branch() const { return cat("refs/heads/", name_); }

  Scheduler& scheduler_;
  SimGit& git_;
  const std::string name_;
  std::map<const SimProcess*, std::string> fetched_;  // looked up, never walked over
};

// ---- behind the proxies

class SimText final : public SimArtifact {
 public:
  explicit SimText(std::string name) : name_(std::move(name)) {}
  std::string words() const override { return "proxy:http://front:8000"; }
  bool overtakes() const override { return true; }

  Result<std::optional<std::string>> read() override {
    auto outcome = send("", {});
    if (!outcome) return unavailable(outcome.failure->text);
    if (outcome.answer.status == 404) return std::optional<std::string>();
    if (outcome.answer.status != 200) return unavailable(outcome.answer.body);
    return std::optional(std::move(outcome.answer.body));
  }

  Result<WriteAnswer> write(const Pass& pass, const std::string& body,
                            api::Fences& /*fences*/) override {
    std::vector<std::string> headers = {cat("Fencing-Token: ", pass.token.number()),
                                        cat("Fencing-Resource: ", pass.resource.text()),
                                        cat("Fencing-Generation: ", pass.generation.hex())};
    if (pass.mode == core::FenceMode::Once) {
      headers.insert(headers.end(), {"Fencing-Mode: once", cat("Fencing-Key: ", pass.key)});
    }
    const auto outcome = send(body, std::move(headers));
    if (!outcome) {
      const bool sent = outcome.failure->kind == net::HttpFailure::Kind::MaybeSent;
      return Error{sent ? Code::UnknownOutcome : Code::Unavailable, outcome.failure->text};
    }
    guard::Refused refused;
    refused.target = words();
    refused.offered = pass.token;
    switch (outcome.answer.status) {
      case 200: return WriteAnswer(guard::Written{});
      case 403: refused.verdict = core::Verdict::Foreign; return WriteAnswer(refused);
      case 409: refused.verdict = core::Verdict::Used; return WriteAnswer(refused);
      case 412: return WriteAnswer(refused);
      case 503: return unavailable(outcome.answer.body);
      default: return Error{Code::UnknownOutcome, outcome.answer.body};
    }
  }

 private:
  net::HttpOutcome send(const std::string& body, std::vector<std::string> headers) const {
    const net::HttpRequest request{.url = cat("http://front:8000/", name_),
                                   .body = body,
                                   .headers = std::move(headers),
                                   .timeout = seconds(120)};
    return net::make_http_client({}, os::system_clock())->send(request);
  }

  const std::string name_;
};

}  // namespace

std::unique_ptr<SimArtifact> make_file(SimDisk& disk, std::string name) {
  return std::make_unique<SimFile>(disk, std::move(name));
}
std::unique_ptr<SimArtifact> make_tree(SimDisk& disk, std::string name) {
  return std::make_unique<SimTree>(disk, std::move(name));
}
std::unique_ptr<SimArtifact> make_row(Scheduler& scheduler, SimSql& sql, std::string name) {
  return std::make_unique<SimRow>(scheduler, sql, std::move(name));
}
std::unique_ptr<SimArtifact> make_branch(Scheduler& scheduler, SimGit& git, std::string name) {
  return std::make_unique<SimBranch>(scheduler, git, std::move(name));
}
std::unique_ptr<SimArtifact> make_text(std::string name) {
  return std::make_unique<SimText>(std::move(name));
}

}  // namespace stint::test
