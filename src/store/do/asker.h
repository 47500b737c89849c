// Requests to a server of the store protocol, and what a failure means.
//
// The rule: a status of 4xx, but for 408, and 507 say that nothing was changed. Any other failure
// of a commit that may have arrived is Code::UnknownOutcome.
//
// Thread safety: every method may be called from any thread.
#pragma once

#include <boost/json/object.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/attempt.h"
#include "net/http_client.h"
#include "store/module.h"

namespace stint::store::durable {

using net::Deadline;
using net::Twice;

// What the URL says.
struct Settings {
  std::string base;  // "https://host/v1/name"
  std::string key;   // empty: none
  std::string name;  // of the store, printable
  net::TlsFiles tls;
  bool proxies = true;
};
// Code::Invalid: what makes no sense.
Result<Settings> settings_of(const OpenRequest& request);

class Asker {
 public:
  Asker(Settings settings, const Clock& clock);

  Result<boost::json::object> ask(std::string_view route, const std::string& body,
                                  const Deadline& deadline, Twice twice) const;
  Result<std::unique_ptr<Watch>> watch(const std::string& body, Millis timeout) const;

 private:
  struct Judged {
    boost::json::object body;
    std::optional<Error> error = {};
    bool again = false;  // may be asked once more
  };
  net::HttpRequest request(std::string_view route, const std::string& body) const;
  Judged judge(const net::HttpOutcome& outcome, Twice twice) const;
  Judged judge_refusal(int status, const boost::json::object& said, Twice twice) const;
  Error fault(std::string_view why) const;

  const Settings settings_;
  const Clock& clock_;
  const std::shared_ptr<net::HttpClient> http_;  // shared: a watch may outlive the store
};

}  // namespace stint::store::durable
