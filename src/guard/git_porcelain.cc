#include "guard/git_porcelain.h"

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace stint::guard {
namespace {

std::string reason_of(std::string_view summary) {
  const std::size_t open = summary.find(" (");
  if (open == summary.npos || !summary.ends_with(')')) return std::string(summary);
  return std::string(summary.substr(open + 2, summary.size() - open - 3));
}

RefFate fate_of_rejected(std::string_view summary, std::string_view reason) {
  if (summary.starts_with("[remote failure]")) return RefFate::NoReport;
  if (summary.starts_with("[remote rejected]")) {
    // The words of different versions of git for the same: moved, or locked.
    for (const std::string_view words :
         {"transaction failed", "failed to update ref", "failed to lock", "cannot lock ref",
          "reference already exists", "incorrect old value", "transaction"}) {
      if (reason.find(words) != reason.npos) return RefFate::Transaction;
    }
    return RefFate::Refused;
  }
  if (reason == "stale info") return RefFate::Stale;
  if (reason == "atomic push failed") return RefFate::Dragged;
  return RefFate::Behind;
}

std::optional<RefLine> parse_line(std::string_view line) {
  const auto fields = split(line, '\t');
  if (fields.size() < 3 || fields[0].size() != 1) return std::nullopt;
  const std::size_t colon = fields[1].rfind(':');
  if (colon == line.npos) return std::nullopt;
  RefLine out;
  out.ref = std::string(fields[1].substr(colon + 1));
  const std::string_view summary = fields[2];
  switch (fields[0].front()) {
    case ' ':
    case '+':
    case '*':
    case '=':
    case '-': out.fate = RefFate::Done; return out;
    case '!':
      out.reason = reason_of(summary);
      out.fate = fate_of_rejected(summary, out.reason);
      return out;
    default: return std::nullopt;
  }
}

}  // namespace

std::vector<RefLine> parse_porcelain(std::string_view out) {
  std::vector<RefLine> lines;
  for (const std::string_view line : split(out, '\n')) {
    if (auto parsed = parse_line(line)) lines.push_back(std::move(*parsed));
  }
  return lines;
}

std::string_view pushed_to(std::string_view out) {
  constexpr std::string_view kTo = "To ";
  for (const std::string_view line : split(out, '\n')) {
    if (line.starts_with(kTo)) return line.substr(kTo.size());
  }
  return {};
}

const RefLine* find_line(const std::vector<RefLine>& lines, std::string_view ref) {
  const auto found = std::ranges::find(lines, ref, &RefLine::ref);
  return found == lines.end() ? nullptr : &*found;
}

}  // namespace stint::guard
