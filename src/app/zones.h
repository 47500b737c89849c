// The system's time-zone database: TZif files under $TZDIR, else /usr/share/zoneinfo.
//
// Read by our own small parser: core wants a zone as a value, and a library for it would be one
// more thing that every start of the program loads.
#pragma once

#include <string>

#include "app/environment.h"
#include "base/result.h"
#include "core/zone.h"

namespace stint::app {

// "Europe/Berlin". UTC is known without a database. Code::Invalid: there is no such zone;
// Code::Unavailable: there is no database, or its file is damaged.
Result<core::Zone> find_zone(const std::string& name, const Environment& environment);

}  // namespace stint::app
