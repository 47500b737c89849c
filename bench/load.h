// One load generator for every server: so many connections, each with one request under way, on one
// thread. What a peer is asked, and how the end of an answer is known, is the peer's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace stint::bench {

// One connection's dialogue.
class Talk {
 public:
  virtual ~Talk() = default;
  // What to send next, given the last answer (empty at the start).
  virtual std::string next(std::string_view answer) = 0;
  // Nothing is held after the last answer: it may end here.
  virtual bool at_rest() const = 0;
  // How many bytes of `in` are one whole answer; 0: more is to come.
  virtual std::size_t whole(std::string_view in) const = 0;
};

struct LoadResult {
  double per_second = 0;  // answers
  double p50_us = 0;
  double p99_us = 0;
};

LoadResult run_load(std::uint16_t port, std::size_t connections, Millis time,
                    const std::function<std::unique_ptr<Talk>(std::size_t)>& talk);

// The length of an HTTP answer with a Content-Length, or of chunks; 0: not all is there.
std::size_t whole_http(std::string_view in);
std::string_view http_body(std::string_view answer);
bool http_ok(std::string_view answer);

}  // namespace stint::bench
