#include "holder/sealing.h"

#include "holder/keeper_thread.h"

namespace stint::holder {

Result<SealEnd> take_steps(const std::vector<SealStep>& steps, Keeper& keeper,
                           const std::function<void()>& renewed,
                           const std::function<std::optional<int>()>& ending_signal) {
  if (steps.empty()) return SealEnd{};
  auto thread = KeeperThread::make(keeper, nullptr, renewed);
  if (!thread) return thread.error();
  if (auto started = (*thread)->start(); !started) return started.error();
  for (const SealStep& step : steps) {
    const Status done = step();
    // A guard's refusal of a token that was just superseded is told as the loss that it is.
    if (!done && done.error().code == Code::Stale) {
      (*thread)->stop();
      keeper.look();
    }
    SealEnd end{.state = keeper.state()};
    if (end.state.standing != KeeperState::Standing::Holding) return end;
    if (!done) return done.error();
    end.interrupted = ending_signal();
    if (end.interrupted) return end;
  }
  return SealEnd{};
}

}  // namespace stint::holder
