// The verbs of `stint cron`; one file each.
#pragma once

#include <optional>
#include <string>

namespace stint::cli {

class Session;

// cron [FILE]
int cron_daemon(Session& session, const std::optional<std::string>& file);
int cron_next(Session& session);     // cron next EXPR
int cron_check(Session& session);    // cron check [FILE]
int cron_run(Session& session);      // cron run JOB --slot T
int cron_pause(Session& session);    // cron pause JOB
int cron_resume(Session& session);   // cron resume JOB
int cron_trigger(Session& session);  // cron trigger JOB

}  // namespace stint::cli
