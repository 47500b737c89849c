// One connection to the server, logged in.
//
// Thread safety: one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "store/redis/facts.h"
#include "store/redis/options.h"
#include "store/redis/resp.h"
#include "store/redis/scripts.h"

namespace stint::store::redis {

class Link {
 public:
  // Connects, encrypts, logs in and chooses the database.
  static Result<std::unique_ptr<Link>> open(const Options& options, MonoTime until);

  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Sends; `sent` becomes true when the first byte may have gone out.
  Status send(std::string_view bytes, MonoTime until, bool& sent);
  Result<Reply> receive(MonoTime until) { return reader_.read(until); }
  // For questions that may be asked twice. An error reply is a fault.
  Result<Reply> ask(const std::vector<std::string_view>& words, MonoTime until);
  // Runs a script, and gives it to the server if it does not know it.
  Result<Reply> run(const Script& script, const std::vector<std::string_view>& keys_and_words,
                    MonoTime until);
  Result<RedisFacts> facts(MonoTime until);

  bool quiet() { return !reader_.pending() && stream_->quiet(); }
  bool pending() const { return reader_.pending(); }
  int fd() const { return stream_->fd(); }

 private:
  Link(const Options& options, std::unique_ptr<Stream> stream)
      : where_(options.where()), stream_(std::move(stream)), reader_(*stream_) {}
  Status log_in(const Options& options, MonoTime until);
  // Asks all at once. Error replies are among the answers.
  Result<std::vector<Reply>> ask_all(const std::string& bytes, std::size_t count, MonoTime until);

  const std::string where_;
  std::unique_ptr<Stream> stream_;
  ReplyReader reader_;
};

// "EVALSHA sha 2 key key words..." or, with `whole`, "EVAL text 2 key key words...".
void append_script(std::string& out, const Script& script, bool whole,
                   const std::vector<std::string_view>& keys_and_words);

}  // namespace stint::store::redis
