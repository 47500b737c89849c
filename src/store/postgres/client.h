// The names of net/postgres as this store uses them.
#pragma once

#include "net/postgres/connection.h"
#include "net/postgres/settings.h"
#include "net/postgres/wire.h"

namespace stint::store::postgres {

using net::postgres::Connection;
using net::postgres::Fault;
using net::postgres::Notification;
using net::postgres::Outcome;
using net::postgres::Params;
using net::postgres::Rows;
using net::postgres::Settings;
using net::postgres::Statement;

}  // namespace stint::store::postgres
