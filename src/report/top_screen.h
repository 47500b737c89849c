// `stint top`: what stands on the screen, and what a key does to it. Pure.
#pragma once

#include <string>
#include <vector>

#include "api/events.h"
#include "api/lease.h"
#include "report/top_panes.h"

namespace stint::report {

// What was read of the store.
struct TopFacts {
  std::string store;  // its URL, without secrets
  WallTime now{};
  std::vector<api::Lease> leases;       // sorted by name
  std::vector<api::Event> events;       // the newest ones, oldest first
  std::vector<api::PastGrant> history;  // of the lease that is looked at, newest first
  std::vector<TopJob> jobs;             // while they are looked at
  std::vector<TopQueue> queues;         // likewise
  std::size_t more_jobs = 0;            // that were not looked at
  std::string jobs_trouble;             // why those cannot be told
  std::string queues_trouble;
  std::string trouble;  // why the store could not be read; the rest is old then
};

// What the person at the keyboard did.
class TopState {
 public:
  enum class Wish { Nothing, Quit };
  // `keys` as they came from the terminal.
  Wish press(std::string_view keys, const TopFacts& facts, std::size_t page);

  const std::string& filter() const { return filter_; }
  bool typing() const { return typing_; }
  bool looking() const { return looking_; }  // at one lease
  TopPane pane() const { return pane_; }     // what stands below, while at none
  // Of the lease under the cursor; empty: there is none.
  std::string selected(const TopFacts& facts) const;
  std::size_t line_of(const std::vector<const api::Lease*>& shown) const;

 private:
  Wish command(std::string_view key, const TopFacts& facts, std::size_t page);
  void type(std::string_view key);
  void move(const TopFacts& facts, std::ptrdiff_t by);

  std::string filter_;
  std::string cursor_;  // a resource: it stays on it while others come and go
  bool typing_ = false;
  bool looking_ = false;
  TopPane pane_ = TopPane::Latest;
};

// Held ones first, then by name; only those that contain the filter, in name, owner or note.
std::vector<const api::Lease*> shown_leases(const TopFacts& facts, const std::string& filter);

// No progress for so long that somebody should look: it was reported once, and not for three ttls.
bool looks_stuck(const api::Lease& lease, WallTime now);

enum class Look {
  Text,   // for a file: nothing but the words
  Plain,  // a terminal without colours: only the cursor is seen
  Colours,
};

// Exactly `rows` lines of at most `columns` cells.
std::vector<std::string> top_screen(const TopFacts& facts, const TopState& state,
                                    std::size_t columns, std::size_t rows, Look look);

// How many leases a page of that screen shows.
std::size_t top_page(std::size_t rows);

// A screen that shows so many of them without scrolling.
std::size_t rows_for(std::size_t leases);

}  // namespace stint::report
