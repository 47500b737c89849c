// What `git push --porcelain` says of each ref. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stint::guard {

enum class RefFate {
  Done,         // updated, made, or up to date already
  Stale,        // our own git: it is not at the value that we expected
  Behind,       // our own git: not a descendant of what stands there (fetch first)
  Dragged,      // our own git: nothing wrong with it, but the push is all or nothing
  Refused,      // the server: with a reason
  Transaction,  // the server: its transaction failed: moved, or locked
  NoReport,     // sent, and the server said nothing of it
};

struct RefLine {
  std::string ref;  // at the server
  RefFate fate = RefFate::NoReport;
  std::string reason;
};

// Only lines about refs; the rest is left out.
std::vector<RefLine> parse_porcelain(std::string_view out);

// The URL that the push went to, without a password; empty: it does not say.
std::string_view pushed_to(std::string_view out);

// Empty: there is none.
const RefLine* find_line(const std::vector<RefLine>& lines, std::string_view ref);

}  // namespace stint::guard
