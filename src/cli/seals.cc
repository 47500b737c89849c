#include "cli/seals.h"

#include "base/json_text.h"
#include "base/text.h"
#include "cli/exit_codes.h"

namespace stint::cli {
namespace {

std::string list(const SealReports& reports, bool shut) {
  std::string out;
  for (const app::SealReport& report : reports) {
    if (report.shut() != shut) continue;
    JsonText line;
    line.field("target", report.target);
    if (!shut) {
      line.field("code", word(report.error.code)).field("message", report.error.message);
    }
    out += cat(out.empty() ? "" : ",", line.done());
  }
  return cat("[", out, "]");
}

}  // namespace

std::string with_seals(std::string lease, const SealReports& reports) {
  if (reports.empty()) return lease;
  lease.pop_back();  // the closing brace
  return cat(lease, ",\"sealed\":", list(reports, true), ",\"not_reached\":", list(reports, false),
             "}");
}

int tell_seals(const Session& session, const SealReports& reports) {
  int code = kDone;
  for (const app::SealReport& report : reports) {
    if (report.shut()) {
      session.say(cat("sealed ", quoted(report.target)));
      continue;
    }
    session.warn(cat(report.outcome == app::SealReport::Outcome::Unknown
                         ? "not known whether it is sealed: "
                         : "not reached: ",
                     quoted(report.target), ": ", report.error.message));
    code = kFailed;
  }
  if (code != kDone) {
    session.warn(
        "the former holder's token still counts at a target that was not reached, until it is "
        "sealed: the next run of this resource tries again");
  }
  return code;
}

}  // namespace stint::cli
