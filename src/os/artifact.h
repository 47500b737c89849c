// Files and trees that take another's place: made whole, like what they replace, and durable before
// they get its name.
//
// Errors name what was being done and the file; Code::Denied where permission was refused.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "os/directory.h"

namespace stint::os {

// Every byte that passes, for a digest; null: nobody wants to see them.
using Onlooker = std::function<void(std::string_view)>;

// From a descriptor to its end. Returns an errno of the reading or the writing.
int copy_bytes(int from, int to, const Onlooker& onlooker);

int read_bytes(int from, const Onlooker& onlooker);

// Gives `fd` the owner, group, mode, access lists and other attributes of the file at `path`, whose
// facts are known.
Status make_alike(int fd, const std::string& path, const FileFacts& facts);

// Owner and group only, as far as this process may give them.
void give_owner(int fd, const FileFacts& facts);

// A copy of the tree `from` as `name` in `to`, which must not be there yet: files, directories and
// symbolic links as they are, with modes, times and attributes, and the owners where this process
// may give them. Every file and every directory of it is synced. Hard links become files of their
// own; anything else (a socket, a device) is refused.
//
// Names that `skip` finds are left out, in every directory, with all that is in them.
//
// The onlooker sees names, modes and contents in a fixed order: two trees that show it the same are
// the same.
using NamePredicate = bool (*)(std::string_view name);
Status copy_tree(const std::string& from, const Directory& to, const std::string& name,
                 const Onlooker& onlooker, NamePredicate skip);

// Visits each folder of the tree `name` in `in`, from the top, with its path below it ("" first,
// "sub/deep") and the names in it. Symbolic links are not followed, nor folders that `skip` finds.
// A tree that is not there, or is none, has no folders.
using FolderVisitor = std::function<Status(const Directory& folder, const std::string& path,
                                           const std::vector<std::string>& names)>;
Status walk_folders(const Directory& in, const std::string& name, NamePredicate skip,
                    const FolderVisitor& visit);

// All of it, as far as possible: others may remove it, or still write into it, at the same time.
void remove_tree(const Directory& in, const std::string& name);

// With all symbolic links followed. Empty: it is not there, or cannot be looked at.
std::string real_path(const std::string& path);

}  // namespace stint::os
