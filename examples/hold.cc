// hold RESOURCE STEPS: works through some steps while it holds the lease on RESOURCE.
//
// Exit codes are those of `stint run`: 0 done or waved off, 69 no store, 75 the lease was lost.
#include <stint/stint.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <stop_token>
#include <string>

namespace {

// A step of the work that ends early when it is told to.
void work(const std::stop_token& stop) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any().wait_for(lock, stop, std::chrono::milliseconds(100),
                                         [] { return false; });
}

int go(stint::Holder& holder, int steps) {
  // Where the one before us stopped.
  int step = std::atoi(holder.previous_progress().c_str());
  if (step >= steps) step = 0;
  for (; step < steps; ++step) {
    work(holder.stop_token());
    if (const auto lost = holder.lost()) {
      std::cerr << "lost: " << word(lost->cause) << '\n';
      return 75;
    }
    // A real program shows the token to whatever it writes to.
    std::cout << "step " << step + 1 << " under token " << holder.token() << '\n';
    if (auto told = holder.progress(std::to_string(step + 1)); !told && told.error() != nullptr) {
      std::cerr << "progress not told: " << told.error()->message << '\n';
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace std::chrono_literals;
  if (argc != 3) {
    std::cerr << "usage: hold RESOURCE STEPS\n";
    return 2;
  }
  auto client = stint::Client::open();
  if (!client) {
    std::cerr << client.error()->message << '\n';
    return 69;
  }
  auto holder =
      stint::Holder::acquire(*client, {.resource = argv[1], .ttl = 10s, .note = "an example"});
  if (const auto* refused = holder.get_if<stint::Refused>()) {
    std::cerr << "held by " << refused->owner << ": " << refused->note << '\n';
    return 0;
  }
  if (!holder) {
    std::cerr << holder.error()->message << '\n';
    return 69;
  }
  return go(*holder, std::atoi(argv[2]));
}
