// One commit: what stands in `log/<number>`.
//
// A file holds the effect of its commit on the state of the number before it, not the question that
// led to it: whoever replays the log does arithmetic on nothing. One judgement is left. A commit
// that demanded a running timer counts only if the file got its name before that timer fired
// (`valid_before`); the moment is the file's ctime, and the next file writes down how it was
// judged.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "os/directory.h"
#include "store/dir/record.h"

namespace stint::store::dir {

using Number = std::uint64_t;
using Nonce = std::uint64_t;

// The nonces of that many commits are remembered: who was away that long cannot learn whether a
// commit of his was the one with its number.
constexpr std::size_t kRemembered = 1024;

// Which directory this is: a copy of it is another one.
struct Identity {
  std::uint64_t inode = 0;
  std::uint64_t born = 0;  // zero: the file system does not tell

  static Identity of(const os::FileFacts& directory);
  bool matches(const Identity& other) const {
    return inode == other.inode && (born == 0 || other.born == 0 || born == other.born);
  }
};

struct Change {
  std::string key;
  Slot slot;
  bool was_appended = false;  // of a removal: the record was an appended one
};

// The state at a number: tables, newest first, and the few things beside the records.
struct Base {
  Number number = 0;
  Nonce nonce = 0;
  std::vector<std::string> tables;
  std::map<std::string, std::uint64_t> appended;  // how many stand under each prefix
  std::deque<Nonce> nonces;                       // of the last numbers up to this one
  Identity identity;
};

struct LogFile {
  Number number = 0;
  Nonce nonce = 0;
  Nonce previous = 0;          // the nonce of the number before
  bool previous_void = false;  // how that one was judged
  Number base_at = 0;          // the number whose file holds the base in force
  bool durable = false;
  std::optional<Nanos> valid_before;
  std::vector<Change> changes;
  std::optional<Base> base;
  std::optional<Identity> identity;  // the operator's word: this copy is the store now
};

std::string file_name(Number number);
// 0: not the name of a log file.
Number number_of(std::string_view name);

std::string encode(const LogFile& file);
// `name` is for the message. A file that is torn, damaged or of another kind is an error.
Result<LogFile> decode(std::string_view bytes, const std::string& name);

}  // namespace stint::store::dir
