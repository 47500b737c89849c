// The readable copy: one small file a record, for people.
//
// It is a cache. It is written after the commit, unsynced, by whoever made it; of two writers the
// older may be the last. Each file names the commit that it shows, and nobody decides anything by
// it.
#pragma once

#include <string>
#include <vector>

#include "store/dir/place.h"

namespace stint::store::dir {

// "records/own/blog-repo" for the key "own/blog-repo": other bytes as %XX, and long names cut and
// told apart by a checksum.
std::string readable_path(std::string_view key);
std::string readable_text(const std::string& key, const Record& record, Number number);

// Appended records (the ledger) are left out.
void show(const Place& place, const std::vector<Change>& changes, Number number);

}  // namespace stint::store::dir
