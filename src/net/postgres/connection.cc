#include "net/postgres/connection.h"

#include <postgresql/libpq-fe.h>

#include <algorithm>

#include "base/text.h"
#include "os/socket_wait.h"

namespace stint::net::postgres {
namespace {

// What a session of our own is set to. Row locks are waited for less long than an answer is: then
// it is the server that gives up, and the outcome is known. The plans are made once and must not
// depend on how large the tables were at that moment. What a role, a database or the server's file
// says of syncs, isolation and where functions are looked for does not hold here, nor does what is
// written there later.   G11
std::string session_options(const Settings& settings, const Connection::Plan& plan) {
  const auto wait = std::max<std::int64_t>(1, settings.timeout.count() * 4 / 5);
  return cat("-c lock_timeout=", wait,
             " -c default_transaction_isolation=read\\ committed"
             " -c plan_cache_mode=force_generic_plan -c jit=off -c enable_seqscan=off"
             " -c enable_hashjoin=off -c enable_mergejoin=off -c enable_bitmapscan=off",
             plan.catalogue_only ? " -c search_path=pg_catalog" : "",
             " -c synchronous_commit=", plan.relaxed ? "off" : "on");
}

bool starts_any(std::string_view text, std::initializer_list<std::string_view> heads) {
  return std::ranges::any_of(heads, [&](std::string_view head) { return text.starts_with(head); });
}

// The SQLSTATE in a verbose message: "FATAL:  28P01: password authentication failed".
std::string state_in(std::string_view message) {
  constexpr std::size_t kLength = 5;
  for (std::size_t at = message.find(":  "); at != message.npos; at = message.find(":  ", at + 1)) {
    const std::string_view state = message.substr(at + 3, kLength);
    const bool word = state.size() == kLength && std::ranges::all_of(state, [](char c) {
                        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z');
                      });
    if (word && message.substr(at + 3 + kLength, 1) == ":") return std::string(state);
  }
  return {};
}

// Without libpq's line about the place in the server's source.
std::string readable(std::string_view message, std::string_view state) {
  std::string out;
  for (const std::string_view line : split(message, '\n')) {
    if (line.starts_with("LOCATION:")) continue;
    out += cat(line, '\n');
  }
  if (const std::size_t at = state.empty() ? out.npos : out.find(cat(state, ": "));
      at != out.npos) {
    out.erase(at, state.size() + 2);
  }
  return out;
}

Code code_of(std::string_view state) {
  // 28: authentication; 42501: a privilege is missing.
  if (state.starts_with("28") || state == "42501") return Code::Denied;
  return Code::Unavailable;
}

}  // namespace

void Connection::Close::operator()(pg_conn* conn) const { ::PQfinish(conn); }

Connection::Connection(pg_conn* conn, const Settings& settings, const Clock& clock, bool pooled)
    : conn_(conn), settings_(settings), clock_(clock), pooled_(pooled) {}

Connection::~Connection() = default;

Result<std::unique_ptr<Connection>> Connection::open(const Settings& settings, const Plan& plan,
                                                     const Clock& clock, MonoTime until) {
  Error last = unavailable("there is no host to connect to");
  for (std::size_t i = 0; i < plan.hosts.size(); ++i) {
    // A host that does not answer leaves time for the others.
    const MonoTime now = clock.mono();
    const auto share = std::max(Nanos(0), until - now) / (plan.hosts.size() - i);
    auto opened = open_one(settings, plan, plan.hosts[i], clock, now + share);
    if (opened) return opened;
    last = opened.error();
    // What is wrong with the URL or the password is wrong everywhere.
    if (last.code != Code::Unavailable) break;
  }
  return last;
}

Result<std::unique_ptr<Connection>> Connection::open_one(const Settings& settings, const Plan& plan,
                                                         const Host& host, const Clock& clock,
                                                         MonoTime until) {
  std::vector<const char*> names;
  std::vector<const char*> values;
  const auto give = [&](const char* name, const std::string& value) {
    if (value.empty()) return;
    names.push_back(name);
    values.push_back(value.c_str());
  };
  const std::string port = host.port == 0 ? "" : std::to_string(host.port);
  const std::string options = plan.pooled ? "" : session_options(settings, plan);
  const std::string writable = "read-write";
  give("host", host.name);
  give("port", port);
  give("options", options);
  // Among several, the one that can be written to.
  if (plan.hosts.size() > 1) give("target_session_attrs", writable);
  for (const auto& [name, value] : settings.given) give(name.c_str(), value);
  names.push_back(nullptr);
  values.push_back(nullptr);
  // Otherwise a locked key is asked for on the terminal, and nobody may be there.
  if (::PQgetSSLKeyPassHook_OpenSSL() == nullptr) {
    ::PQsetSSLKeyPassHook_OpenSSL(::PQdefaultSSLKeyPassHook_OpenSSL);
  }
  pg_conn* conn = ::PQconnectStartParams(names.data(), values.data(), 0);
  if (conn == nullptr) return unavailable("out of memory");
  std::unique_ptr<Connection> out(new Connection(conn, settings, clock, plan.pooled));
  if (auto connected = out->finish_connecting(until); !connected) return connected.error();
  return out;
}

Status Connection::finish_connecting(MonoTime until) {
  if (::PQstatus(conn_.get()) == CONNECTION_BAD) {
    const std::string_view message = ::PQerrorMessage(conn_.get());
    if (message.starts_with("invalid ")) {
      return invalid(cat("the store URL has an ", settings_.scrubbed(message)));
    }
    return connect_error(message);
  }
  // A role may have asked to be told everything, from the start.
  ::PQsetNoticeProcessor(
      conn_.get(), [](void*, const char*) {}, nullptr);
  // The only way to learn the SQLSTATE of a refused connection.
  ::PQsetErrorVerbosity(conn_.get(), PQERRORS_VERBOSE);
  PostgresPollingStatusType wanted = PGRES_POLLING_WRITING;
  while (wanted != PGRES_POLLING_OK) {
    if (wanted == PGRES_POLLING_FAILED) return connect_error(::PQerrorMessage(conn_.get()));
    const auto direction = wanted == PGRES_POLLING_READING ? os::Wanted::Read : os::Wanted::Write;
    if (!os::wait_socket(::PQsocket(conn_.get()), direction, until)) {
      return unavailable(cat("no answer from ", printable(::PQhost(conn_.get())), ':',
                             printable(::PQport(conn_.get())), " within ",
                             format_duration(settings_.timeout)));
    }
    wanted = ::PQconnectPoll(conn_.get());
  }
  ::PQsetErrorVerbosity(conn_.get(), PQERRORS_DEFAULT);
  ::PQsetnonblocking(conn_.get(), 1);
  // Whatever the name led to before: what a replica shows may be old. (Servers from 14 on say it.)
  const char* const standby = ::PQparameterStatus(conn_.get(), "in_hot_standby");
  if (standby != nullptr && std::string_view(standby) == "on") {
    return unavailable("the server is a read-only replica: name the primary");
  }
  constexpr int kOldest = 120'000;
  if (const int version = server_version(); version < kOldest) {
    return unavailable(
        cat("the server is PostgreSQL ", version / 10'000, "; Stint needs 12 or newer"));
  }
  return {};
}

Error Connection::connect_error(std::string_view message) const {
  const std::string state = state_in(message);
  const bool needs = ::PQconnectionNeedsPassword(conn_.get()) != 0;
  const std::string text = settings_.scrubbed(readable(message, state));
  if (needs) return {Code::Denied, cat("the server wants a password: ", text)};
  return {code_of(state), text};
}

bool Connection::broken() const { return dropped_ || ::PQstatus(conn_.get()) != CONNECTION_OK; }
int Connection::server_version() const { return ::PQserverVersion(conn_.get()); }
int Connection::told_pid() const { return ::PQbackendPID(conn_.get()); }
int Connection::fd() const { return ::PQsocket(conn_.get()); }

bool Connection::healthy() {
  if (broken()) return false;
  // An idle connection has nothing to say but its end.
  if (!os::readable_now(fd())) return true;
  return ::PQconsumeInput(conn_.get()) == 1 && !broken() && !os::readable_now(fd());
}

Fault Connection::lost(std::string_view what) {
  dropped_ = true;
  return {unavailable(settings_.scrubbed(what)), "", false};
}

// An error of the statement itself undid all of it. One that says that the connection or the server
// goes away leaves open whether the commit was written before: also a pooler speaks so, in the name
// of a server that has gone.
Fault Connection::refused(const pg_result* result) {
  const auto field = [result](int code) -> std::string_view {
    const char* text = ::PQresultErrorField(result, code);
    return text == nullptr ? std::string_view() : std::string_view(text);
  };
  Fault fault;
  fault.state = field(PG_DIAG_SQLSTATE);
  fault.detail = settings_.scrubbed(field(PG_DIAG_MESSAGE_DETAIL));
  const bool error = field(PG_DIAG_SEVERITY_NONLOCALIZED) == "ERROR";
  const bool gone = starts_any(fault.state, {"08", "57P", "58", "XX"}) || fault.state == "40003";
  fault.certain = error && !gone && !fault.state.empty();
  if (!fault.certain) dropped_ = true;
  fault.error = {code_of(fault.state), settings_.scrubbed(field(PG_DIAG_MESSAGE_PRIMARY))};
  if (fault.error.message.empty()) {
    fault.error.message = settings_.scrubbed(::PQerrorMessage(conn_.get()));
  }
  return fault;
}

Outcome<std::monostate> Connection::flush(MonoTime until) {
  while (true) {
    const int left = ::PQflush(conn_.get());
    if (left == 0) return std::monostate();
    if (left < 0) return tl::unexpected(lost(::PQerrorMessage(conn_.get())));
    if (!os::wait_socket(fd(), os::Wanted::Both, until)) {
      return tl::unexpected(lost("the server takes no more"));
    }
    // It may want to say something before it reads on.
    if (os::readable_now(fd()) && ::PQconsumeInput(conn_.get()) == 0) {
      return tl::unexpected(lost(::PQerrorMessage(conn_.get())));
    }
  }
}

Outcome<Rows> Connection::finish(MonoTime until) {
  if (auto sent = flush(until); !sent) return tl::unexpected(sent.error());
  std::optional<Fault> fault;
  Rows rows;
  while (true) {
    while (::PQisBusy(conn_.get()) != 0) {
      if (!os::wait_socket(fd(), os::Wanted::Read, until)) {
        return tl::unexpected(
            lost(cat("the server has not answered within ", format_duration(settings_.timeout))));
      }
      if (::PQconsumeInput(conn_.get()) == 0) {
        return tl::unexpected(lost(::PQerrorMessage(conn_.get())));
      }
    }
    pg_result* result = ::PQgetResult(conn_.get());
    if (result == nullptr) break;
    Rows owned(result);
    const auto status = ::PQresultStatus(result);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
      rows = std::move(owned);
    } else if (!fault) {
      fault = refused(result);
    }
  }
  if (fault) return tl::unexpected(*fault);
  if (broken()) return tl::unexpected(lost("the connection was lost"));
  return rows;
}

Outcome<Rows> Connection::run(const Statement& statement, const Params& params, MonoTime until) {
  const auto pointers = params.pointers();
  const auto lengths = params.lengths();
  const std::vector<int> formats(params.size(), 1);
  const int count = static_cast<int>(params.size());
  const auto not_sent = [this] {
    const Fault fault = lost(::PQerrorMessage(conn_.get()));
    return tl::unexpected(Fault{fault.error, "", true});
  };
  const bool by_name = !pooled_ && !statement.name.empty() && !used_.insert(statement.name).second;
  if (by_name && !prepared_.contains(statement.name)) {
    if (::PQsendPrepare(conn_.get(), statement.name.c_str(), statement.sql.c_str(), count,
                        params.types().data()) == 0) {
      return not_sent();
    }
    if (auto prepared = finish(until); !prepared) {
      Fault fault = prepared.error();
      fault.certain = true;  // nothing but the preparation was sent
      return tl::unexpected(fault);
    }
    prepared_.insert(statement.name);
  }
  const int sent =
      by_name
          ? ::PQsendQueryPrepared(conn_.get(), statement.name.c_str(), count, pointers.data(),
                                  lengths.data(), formats.data(), 1)
          : ::PQsendQueryParams(conn_.get(), statement.sql.c_str(), count, params.types().data(),
                                pointers.data(), lengths.data(), formats.data(), 1);
  if (sent == 0) return not_sent();
  return finish(until);
}

Outcome<std::monostate> Connection::run_script(const std::string& sql, MonoTime until) {
  if (::PQsendQuery(conn_.get(), sql.c_str()) == 0) {
    return tl::unexpected(lost(::PQerrorMessage(conn_.get())));
  }
  if (auto done = finish(until); !done) return tl::unexpected(done.error());
  return std::monostate();
}

std::vector<Notification> Connection::notifications() {
  std::vector<Notification> out;
  if (os::readable_now(fd()) && ::PQconsumeInput(conn_.get()) == 0) dropped_ = true;
  while (::pgNotify* heard = ::PQnotifies(conn_.get())) {
    out.push_back({.payload = heard->extra});
    ::PQfreemem(heard);
  }
  return out;
}

}  // namespace stint::net::postgres
