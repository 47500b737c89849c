// One process of the traffic in server_history.h: opens the store once, works with many threads.
#pragma once

#include <string>
#include <string_view>

#include "tests/fault/server_history.h"

namespace stint::test {

// In the folder of the traffic.
constexpr std::string_view kHistory = "history.jsonl";
constexpr std::string_view kComplaints = "complaints";

struct ClientProcess {
  int process = 0;
  const TrafficPlan& plan;
  const OpenStore& open;
  const std::string& folder;
  Board& board;
  // Instead of the file in the folder, where the clients are on several machines.
  probe::History* history = nullptr;
};

// Works until the board says stop. The exit code of the process.
int run_clients(const ClientProcess& what);

}  // namespace stint::test
