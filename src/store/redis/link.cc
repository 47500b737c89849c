#include "store/redis/link.h"

#include "base/text.h"
#include "os/dial.h"
#include "store/redis/faults.h"

namespace stint::store::redis {

void append_script(std::string& out, const Script& script, bool whole,
                   const std::vector<std::string_view>& keys_and_words) {
  CommandWriter writer(out, keys_and_words.size() + 3);
  writer.word(whole ? "EVAL" : "EVALSHA").word(whole ? script.text : script.sha).word("2");
  for (const std::string_view word : keys_and_words) writer.word(word);
}

Result<std::unique_ptr<Link>> Link::open(const Options& options, MonoTime until) {
  auto fd = options.host.empty() ? os::dial_unix(options.socket, until)
                                 : os::dial_tcp(options.host, options.port, until);
  if (!fd) return fd.error();
  std::unique_ptr<Stream> stream;
  if (options.tls) {
    auto encrypted = start_tls(std::move(*fd), options.certificates, until);
    if (!encrypted)
      return std::move(encrypted.error()).during(cat("starting TLS with ", options.where()));
    stream = std::move(*encrypted);
  } else {
    stream = std::make_unique<PlainStream>(std::move(*fd));
  }
  std::unique_ptr<Link> link(new Link(options, std::move(stream)));
  if (auto ok = link->log_in(options, until); !ok) return ok.error();
  return link;
}

Status Link::send(std::string_view bytes, MonoTime until, bool& sent) {
  return stream_->write(bytes, until, sent);
}

Result<std::vector<Reply>> Link::ask_all(const std::string& bytes, std::size_t count,
                                         MonoTime until) {
  bool sent = false;
  if (auto ok = send(bytes, until, sent); !ok) {
    return std::move(ok.error()).during(cat("talking to ", where_));
  }
  std::vector<Reply> out;
  while (out.size() < count) {
    auto reply = receive(until);
    if (!reply) return std::move(reply.error()).during(cat("talking to ", where_));
    out.push_back(std::move(*reply));
  }
  return out;
}

Result<Reply> Link::ask(const std::vector<std::string_view>& words, MonoTime until) {
  std::string bytes;
  append_command(bytes, words);
  auto replies = ask_all(bytes, 1, until);
  if (!replies) return replies.error();
  if (replies->front().is(Reply::Kind::Error)) return fault_of(replies->front(), where_);
  return std::move(replies->front());
}

Result<Reply> Link::run(const Script& script, const std::vector<std::string_view>& keys_and_words,
                        MonoTime until) {
  for (const bool whole : {false, true}) {
    std::string bytes;
    append_script(bytes, script, whole, keys_and_words);
    auto replies = ask_all(bytes, 1, until);
    if (!replies) return replies.error();
    Reply& reply = replies->front();
    if (!whole && reply.error_is("NOSCRIPT")) continue;
    if (reply.is(Reply::Kind::Error)) return fault_of(reply, where_);
    return std::move(reply);
  }
  return unavailable("unreachable");
}

Status Link::log_in(const Options& options, MonoTime until) {
  std::string bytes;
  std::size_t count = 0;
  if (!options.password.empty()) {
    std::vector<std::string_view> words = {"AUTH"};
    if (!options.user.empty()) words.emplace_back(options.user);
    words.emplace_back(options.password);
    append_command(bytes, words);
    ++count;
  }
  const std::string database = std::to_string(options.database);
  // Also when it is 0: the first answer of a server that is none must be looked at.
  append_command(bytes, {"SELECT", database});
  auto replies = ask_all(bytes, ++count, until);
  if (!replies) return replies.error();
  for (const Reply& reply : *replies) {
    if (!reply.is(Reply::Kind::Error)) continue;
    if (&reply == &replies->back() && reply.error_is("ERR")) {
      return unavailable(cat("the Redis at ", where_, " has no database ", options.database));
    }
    // Redis answers a password that nobody asked for with ERR.
    if (reply.error_is("ERR")) {
      return Error{Code::Denied,
                   cat("the Redis at ", where_,
                       " knows no passwords, or not in this form (user and password)")};
    }
    return fault_of(reply, where_);
  }
  return {};
}

Result<RedisFacts> Link::facts(MonoTime until) {
  std::string bytes;
  for (const char* section : {"server", "replication", "persistence", "memory"}) {
    append_command(bytes, {"INFO", section});
  }
  append_command(bytes, {"CONFIG", "GET", "*appendfsync*"});
  auto replies = ask_all(bytes, 5, until);
  if (!replies) return replies.error();
  std::string info;
  for (std::size_t i = 0; i < 4; ++i) {
    const Reply& reply = (*replies)[i];
    if (reply.is(Reply::Kind::Error)) return fault_of(reply, where_);
    if (!reply.is(Reply::Kind::Bulk)) return damaged("INFO is no text");
    info += reply.text;
    info += '\n';
  }
  std::vector<std::string> config;
  // Often forbidden, or renamed: then it is not known.
  for (const Reply& item : replies->back().items) config.push_back(item.text);
  return read_facts(info, config);
}

}  // namespace stint::store::redis
