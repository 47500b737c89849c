// One step of one holder at a guarded file or directory, as a process that can be frozen or killed.
//
//   guard_player write PATH TOKEN NEWEST BODY [--once]
//   guard_player publish PATH TOKEN NEWEST STAGED [--once]
//   guard_player seal file:PATH|dir:PATH TOKEN NEWEST -
//
// Exit codes as the program's: 0, 13 refused, 14, 69.
#include <cstdio>
#include <string_view>

#include "base/text.h"
#include "guard/directory_guard.h"
#include "guard/file_guard.h"
#include "guard/words.h"
#include "tests/support/issuing_fences.h"

namespace {

using namespace stint;  // NOLINT(google-build-using-namespace): a main

constexpr int kRefused = 13;
constexpr int kUnknown = 14;
constexpr int kUnavailable = 69;

template <class Answer>
int tell(const Answer& answer, const guard::Pass& pass) {
  if (!answer) {
    std::fprintf(stderr, "%s\n", answer.error().message.c_str());
    return answer.error().code == Code::UnknownOutcome ? kUnknown : kUnavailable;
  }
  if (const auto* refused = std::get_if<guard::Refused>(&*answer)) {
    std::fprintf(stderr, "%s\n", guard::error_of(*refused, pass).message.c_str());
    return kRefused;
  }
  return 0;
}

int play(const std::string& verb, const std::string& path, std::uint64_t token,
         std::uint64_t newest, const std::string& what, bool once) {
  test::IssuingFences fences;
  fences.issue(newest);
  guard::Pass pass = test::pass_with(token);
  if (once) pass.mode = core::FenceMode::Once;
  if (verb == "write") {
    return tell(guard::write_file({.path = path, .body = what}, pass, &fences), pass);
  }
  if (verb == "publish") {
    return tell(guard::publish_directory({.path = path, .staged = what}, pass, &fences), pass);
  }
  const guard::SealRequest request{.pass = pass, .by_order = false, .adopt = std::nullopt};
  const std::string place = path.substr(path.find(':') + 1);
  if (path.starts_with("file:")) return tell(guard::seal_file(place, request, &fences), pass);
  return tell(guard::seal_directory(place, request, &fences), pass);
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kWords = 6;
  if (argc < kWords) return 2;
  const auto token = stint::parse_digits(argv[3]);
  const auto newest = stint::parse_digits(argv[4]);
  if (!token || !newest) return 2;
  return play(argv[1], argv[2], *token, *newest, argv[5], argc > kWords);
}
