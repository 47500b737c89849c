// What every command has at hand: its words, the settings, the store, and the two output streams.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/json.h"
#include "api/lease.h"
#include "app/job_file.h"
#include "app/opened.h"
#include "app/settings.h"
#include "cli/command.h"
#include "os/clock.h"
#include "os/random.h"

namespace stint::cli {

class Table;

class Session {
 public:
  Session(app::Environment environment, Words words);
  ~Session();

  const Words& words() const { return words_; }
  const app::Environment& environment() const { return environment_; }
  const Clock& clock() const { return clock_; }
  Random& random() { return random_; }
  bool json() const { return words_.has("--json"); }
  bool quiet() const { return words_.has("-q"); }

  // The store that stint.toml names. REQUIRES: settings() was not called yet.
  void use_jobs_store(std::string url, const app::JobFile& file) {
    jobs_store_ = {{std::move(url), file.path}, file.found};
  }
  // Flags, environment, file, default. Fails only once: the first error is told.
  Result<const app::Settings*> settings();
  Result<app::Opened*> open(bool may_create = true);

  // ---- output: results to stdout, talk to stderr
  void print(std::string_view line);
  void print_table(const Table& table);
  // With --json standard error has JSON alone: an error is one document, a warning too.
  void say(std::string_view line) const;     // in words; neither with -q nor with --json
  void report(std::string_view line) const;  // of what runs on and on; not with -q
  void warn(std::string_view line) const;    // also with -q
  // The result of a verb: an object, or words.
  int done(const std::vector<api::JsonField>& fields, std::string_view words);
  int nothing(std::string_view what);  // there is none of it: exit 3
  // What was done, if the result cannot be printed. No secrets.
  void did(std::string words) { did_ = std::move(words); }
  int unwritten();
  int fail(const Error& error, const api::Lease* lease = nullptr, std::string_view cause = {});
  void complain(const std::string& document) const;  // JSON, to stderr
  // `option`: by which this command waits; empty: it has none.
  int held(const api::Refused& refused, std::string_view option);
  int lost(const api::Lost& lost, Token offered);
  void skipped(std::string_view line, const api::Lease& lease) const;  // not with -q
  // Bold on a terminal that shows it.
  std::string strong(std::string_view text) const;

  // ---- words with meaning
  Result<Owner> owner();  // given or made up
  Result<std::optional<Owner>> given_owner();
  Result<ResourceName> resource();  // the first operand, else STINT_RESOURCE
  Result<Millis> duration(std::string_view option, std::optional<Millis> fallback);
  Result<Token> token();  // --token, else what an ancestor holds of resource()
  Result<Token> token_of(const ResourceName& resource);
  // What proves that we hold it: environment, then the claim files.
  Result<api::Grip> grip(const ResourceName& resource, Token token);
  app::Claims claims();

 private:
  app::Environment environment_;
  Words words_;
  os::SystemClock clock_;
  os::SystemRandom random_;
  std::optional<app::JobsStore> jobs_store_;
  std::optional<app::Settings> settings_;
  std::unique_ptr<app::Opened> opened_;
  std::string did_;
};

// "held by host-a:4711 for another 18 s ..."
std::string describe_holder(const api::Lease& lease, const Clock& clock);

}  // namespace stint::cli
