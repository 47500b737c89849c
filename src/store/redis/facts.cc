#include "store/redis/facts.h"

#include <algorithm>
#include <map>

#include "base/text.h"

namespace stint::store {

bool RedisFacts::durable() const { return append_only && fsync == "always" && !sync_pauses; }

bool RedisFacts::keeps_tail() const { return durable() && replicas == 0 && !was_replica; }

std::string RedisFacts::may_lose() const {
  std::string out;
  if (!append_only) {
    out =
        "a crash or a restart loses what came after the last snapshot, or everything if there "
        "is none (appendonly no)";
  } else if (!fsync) {
    out =
        "unknown: this user may not ask for appendfsync; unless it is always, a crash may lose "
        "the last commits";
  } else if (*fsync == "everysec") {
    out = "a crash or a power cut loses up to two seconds of commits (appendfsync everysec)";
  } else if (*fsync != "always") {
    out = cat("a power cut loses what the system had not written yet (appendfsync ",
              printable(*fsync), ")");
  } else if (sync_pauses) {
    out =
        "a power cut while the log is rewritten loses the commits since (no-appendfsync-on-"
        "rewrite yes)";
  } else {
    out = "nothing that was acknowledged, by a crash or a power cut";
  }
  if (replicas > 0 || was_replica) {
    out += cat(
        "; a fail-over to a replica loses what it had not received",
        wait > 0 ? cat(" (each grant waits for ", wait, ", but a fail-over may choose another one)")
                 : std::string());
  }
  return out;
}

std::vector<Finding> RedisFacts::findings() const {
  using Level = Finding::Level;
  std::vector<Finding> out;
  out.push_back({Level::Ok, "version", cat("Redis ", printable(version))});
  if (eviction != "noeviction") {
    out.push_back({Level::Fail, "eviction",
                   cat("maxmemory-policy is ", printable(eviction),
                       max_memory > 0 ? ": a full server may delete all leases"
                                      : ": once maxmemory is set, a full server may delete all "
                                        "leases",
                       "; set it to noeviction")});
  }
  if (replicas > 0 && wait == 0) {
    out.push_back({Level::Warn, "replicas",
                   cat("it has ", replicas,
                       " replicas, and grants do not wait for them: a fail-over may repeat a grant "
                       "(see ?wait=)")});
  }
  return out;
}

Finding RedisFacts::rights(const Caller& caller) const {
  using Level = Finding::Level;
  const std::string who =
      caller.user.empty() ? "the default user" : cat("the user ", quoted(printable(caller.user)));
  if (caller.anybody) {
    return {Level::Warn, "permissions",
            "the server asks for no password: whoever reaches it may change any lease; set one, or "
            "an ACL user"};
  }
  if (!fsync) {
    return {Level::Warn, "permissions",
            cat(who,
                " may do all that is needed, but not CONFIG GET: what a crash loses is not "
                "known; allow +config|get")};
  }
  return {Level::Ok, "permissions", cat(who, " may do all that is needed")};
}

namespace redis {
namespace {

using Fields = std::map<std::string, std::string, std::less<>>;

Fields fields_of(std::string_view info) {
  Fields out;
  for (const std::string_view line : split(info, '\n')) {
    const std::string_view text = trim(line);
    const std::size_t colon = text.find(':');
    if (text.starts_with('#') || colon == text.npos) continue;
    out.emplace(text.substr(0, colon), text.substr(colon + 1));
  }
  return out;
}

std::string text_of(const Fields& fields, std::string_view name) {
  const auto found = fields.find(name);
  return found == fields.end() ? "" : found->second;
}

bool only_zeros(std::string_view text) { return text.find_first_not_of('0') == text.npos; }

}  // namespace

Result<RedisFacts> read_facts(std::string_view info, const std::vector<std::string>& config) {
  const Fields fields = fields_of(info);
  RedisFacts out;
  out.version = text_of(fields, "redis_version");
  const auto major = parse_digits(out.version.substr(0, out.version.find('.')));
  out.run_id = text_of(fields, "run_id");
  const std::string role = text_of(fields, "role");
  const auto replicas = parse_digits(text_of(fields, "connected_slaves"));
  if (!major || *major > 1000 || out.run_id.empty() || out.run_id.size() > 64 || role.empty()) {
    return unavailable("the server does not say its version, its run id and its role (INFO)");
  }
  out.major = static_cast<int>(*major);
  out.mode = text_of(fields, "redis_mode");
  out.replica = role == "slave";
  out.master = cat(text_of(fields, "master_host"), ":", text_of(fields, "master_port"));
  out.loading = text_of(fields, "loading") == "1";
  out.replicas = replicas.value_or(0);
  for (std::uint64_t i = 0; i < std::min(out.replicas, std::uint64_t{1000}); ++i) {
    // slave0:ip=10.0.0.7,port=6379,state=online,...
    if (text_of(fields, cat("slave", i)).find("state=online") != std::string::npos) ++out.online;
  }
  out.was_replica = !only_zeros(text_of(fields, "master_replid2"));
  out.eviction = text_of(fields, "maxmemory_policy");
  out.max_memory = parse_digits(text_of(fields, "maxmemory")).value_or(0);
  out.append_only = text_of(fields, "aof_enabled") == "1";
  for (std::size_t i = 0; i + 1 < config.size(); i += 2) {
    if (config[i] == "appendfsync") out.fsync = config[i + 1];
    if (config[i] == "no-appendfsync-on-rewrite") out.sync_pauses = config[i + 1] == "yes";
  }
  return out;
}

Status check_usable(const RedisFacts& facts, std::string_view where) {
  constexpr int kOldest = 6;
  if (facts.major < kOldest) {
    return unavailable(
        cat("Redis ", printable(facts.version), " at ", where, " is too old: 6.0 is the least"));
  }
  if (facts.mode == "sentinel") {
    return unavailable(cat(where, " is a Sentinel, not a Redis that keeps data"));
  }
  if (facts.replica) {
    return unavailable(cat("the Redis at ", where, " is a read-only replica of ",
                           printable(facts.master), ": point stint at the master"));
  }
  if (facts.loading) return unavailable(cat("the Redis at ", where, " is still loading its data"));
  return {};
}

}  // namespace redis
}  // namespace stint::store
