// Requests to an etcd cluster through the JSON gateway of its members.
//
// Owns three rules: which member is asked (and the next one when it fails), the login and its
// token, and what a failure means. A request that must not be carried out twice and may have
// arrived is Code::UnknownOutcome, always; one that surely did not arrive goes to the next member.
//
// Thread safety: every method may be called from any thread.
#pragma once

#include <atomic>
#include <boost/json/object.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "net/attempt.h"
#include "net/http_client.h"

namespace stint::store::etcd {

using net::Deadline;
using net::Twice;

// The server's kinds of refusal that somebody here acts upon.
enum class Refusal {
  None,
  LeaseNotFound,
  NoSpace,  // said also of what was carried out: commit.h
  Other,
};

struct Reply {
  boost::json::object body;
  std::optional<Error> error = {};
  Refusal refusal =
      Refusal::None;         // set: the server refused, and nothing was changed (NoSpace: or)
  bool stale_token = false;  // because of the token: log in and ask again
  explicit operator bool() const { return !error; }
};

struct GatewayOptions {
  std::vector<std::string> members;  // "http://host:port"
  std::string user;
  std::string password;
  std::string name;  // of the store, printable
};

class Gateway {
 public:
  Gateway(GatewayOptions options, net::HttpClient& http, const Clock& clock);

  // POST; an empty body: GET.
  Reply ask(std::string_view path, const std::string& body, const Deadline& deadline, Twice twice);

  // For a stream: the member that is asked now.
  Result<net::HttpRequest> stream_request(std::string_view path, const std::string& body,
                                          const Deadline& deadline);
  // The stream failed: another member next time; a token that it was refused with is dropped.
  void stream_failed();

  // The server's own words, fit to be shown: one line, short, without our secrets.
  std::string scrubbed(std::string_view text);

 private:
  Result<std::string> token(const Deadline& deadline);
  void forget_token(const std::string& used);
  Result<std::string> log_in(const Deadline& deadline);
  Reply ask_members(std::string_view path, const std::string& body, const Deadline& deadline,
                    Twice twice, const std::string& token);
  net::HttpRequest request(std::size_t member, std::string_view path, const std::string& body,
                           const std::string& token) const;
  // Fills in what the answer means; true: another member may be asked.
  bool judge(const net::HttpOutcome& outcome, Twice twice, std::size_t member, Reply& reply);
  bool judge_refusal(const boost::json::object& said, Twice twice, std::size_t member,
                     Reply& reply);
  void move_on(std::size_t from);
  Error unreachable(std::size_t member, std::string_view why);

  const GatewayOptions options_;
  net::HttpClient& http_;
  const Clock& clock_;
  std::atomic<std::size_t> member_ = 0;  // the one that answered last

  Mutex mutex_;
  std::string token_ GUARDED_BY(mutex_);
};

}  // namespace stint::store::etcd
