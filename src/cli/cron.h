// The verbs of `stint cron`; one file each.
#pragma once

namespace stint::cli {

class Session;

int cron_next(Session& session);  // cron next EXPR

}  // namespace stint::cli
