// One server's address, and how it is asked.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "api/wire.h"
#include "client/client.h"
#include "net/http_client.h"

namespace stint::client {

class Link {
 public:
  Link(const ConnectRequest& request, const Clock& clock);

  struct Reply {
    int status = 0;
    std::string body;
    JsonValue json;
  };
  using Query = std::vector<std::pair<std::string, std::string>>;

  // A look: nothing can have happened. Errors: Unavailable, Denied ...
  Result<Reply> get(const std::string& path, const Query& query = {});

  enum class Again {
    No,     // once: it may have happened, and asking again would be another request
    Yes,    // the same request again is the same request
    Leave,  // the same; and who gets a yes acts on it, so that an old one is none
    Look,   // nothing can have happened: any answer is one
  };
  // Errors: UnknownOutcome when it may have happened.
  Result<Reply> post(const std::string& path, const std::string& body, Again again);
  // An acquire: its claim makes it one request however often it is sent.
  Result<Reply> post_claimed(const std::string& path, const std::string& body);
  // An idempotency key goes along, the same at each try.
  Result<Reply> post_once(const std::string& path, const std::string& body);

  // Wakes at every "changed" of /v1/watch.
  Result<std::unique_ptr<Watch>> watch(const std::string& resource);
  // ... of another such path.
  Result<std::unique_ptr<Watch>> watch_at(const std::string& path, const Query& query);

  // The error that a reply other than 200 tells.
  static Error error_of(const Reply& reply);
  // One answer for each of `count` questions that were asked in one request: the reply's error for
  // all of them; `odd` where there are not so many answers.
  template <class Answer>
  static std::vector<Result<Answer>> each_of(
      const Result<Reply>& reply, std::size_t count, const Error& odd,
      const std::function<Result<Answer>(const JsonValue&)>& read) {
    const auto all_alike = [&](const Error& error) {
      return std::vector<Result<Answer>>(count, Result<Answer>(error));
    };
    if (!reply) return all_alike(reply.error());
    if (reply->status != 200) return all_alike(error_of(*reply));
    const JsonValue* results = JsonFields(reply->json).find("results");
    const auto* list = results != nullptr ? results->if_list() : nullptr;
    if (list == nullptr || list->size() != count) return all_alike(odd);
    std::vector<Result<Answer>> out;
    for (const JsonValue& one : *list) out.push_back(read(one));
    return out;
  }

 private:
  Result<Reply> send(const net::HttpRequest& request, bool changes);
  using Settles = bool (*)(int status);
  Result<Reply> post_tries(const std::string& path, const std::string& body,
                           std::vector<std::string> headers, int tries, Settles settles);
  // The limit of a call holds for all of its tries together. False: no time is left for another.
  bool within(net::HttpRequest& request, MonoTime deadline) const;
  std::vector<std::string> headers() const;
  std::string url_of(const std::string& path, const Query& query) const;

  const ConnectRequest request_;
  const Clock& clock_;
  std::string base_;  // "https://host:port"
  std::shared_ptr<net::HttpClient> http_;
};

std::string percent_encoded(std::string_view text);

}  // namespace stint::client
