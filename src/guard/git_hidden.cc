#include "guard/git_hidden.h"

#include "base/text.h"

namespace stint::guard {

std::string words_of_hidden(const std::string& ref) {
  return cat("the server hides ", ref,
             " from those who read or from those who push (uploadpack.hideRefs, receive.hideRefs "
             "or transfer.hideRefs there), so that no other holder could go on. Whoever runs it "
             "takes that line away, or give fences another place (--fence-ref "
             "refs/heads/zz-fence/, in targets ;fence=refs/heads/zz-fence/)");
}

std::string take_back_fence(const GitRemote& remote, const std::string& oid) {
  const auto removed = remote.remove(oid);
  if (removed && removed->ok()) return "The fence was taken back: nothing was changed";
  return "The fence stands there and could not be taken back; the branch was not changed";
}

Status check_shown(const GitRemote& remote, const std::string& target, const std::string& oid) {
  const std::string& ref = remote.place().ref;
  auto shown = remote.oid_at_server(ref);
  if (!shown) {
    return unavailable(cat(quoted(target), " was sealed, and its fence could not be read back: ",
                           shown.error().message));
  }
  // A newer holder may have moved it already.
  if (!shown->empty()) return {};
  return Error{Code::Failed,
               cat(quoted(target), ": ", words_of_hidden(ref), ". ", take_back_fence(remote, oid))};
}

}  // namespace stint::guard
