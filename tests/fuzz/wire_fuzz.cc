// What files and servers say: fence files and marks, the log of a dir: store, lease records, RESP,
// etcd's answers, those of the store protocol, git's porcelain and fences, histories. The first
// byte says which. Built and run by tools/fuzz.sh (libFuzzer); the corpus is replayed by
// `fuzz_replay` in `make test`.
#include <algorithm>
#include <boost/json.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "guard/fence_file.h"
#include "guard/git_fence.h"
#include "guard/git_porcelain.h"
#include "probe/history.h"
#include "service/records.h"
#include "store/dir/log_file.h"
#include "store/do/wire.h"
#include "store/etcd/wire.h"
#include "store/redis/resp.h"
#include "tests/fuzz/entry.h"

namespace {

using namespace stint;
using fuzz::must;

// "name\ncontent"
void fuzz_fences(std::string_view text) {
  const auto end = text.find('\n');
  const std::string_view name = text.substr(0, end);
  const std::string_view content = end == text.npos ? "" : text.substr(end + 1);
  const auto beside = guard::parse_beside("page", name);
  if (beside && *beside) {
    must((*beside)->name == name && guard::is_guards_own(name));
    const auto fence = guard::parse_fence(**beside, content);
    if (fence) {
      // What was understood is written down the same.
      const auto again = guard::parse_fence(**beside, guard::fence_text(*fence));
      must(again && again->fence.token == fence->fence.token && again->life == fence->life);
    }
  }
  (void)guard::parse_used(name, content);
}

void fuzz_log(std::string_view text) {
  const auto file = store::dir::decode(text, "log/1");
  if (!file) return;
  const auto again = store::dir::decode(store::dir::encode(*file), "log/1");
  must(again && again->number == file->number && again->nonce == file->nonce);
}

void fuzz_records(std::string_view text) {
  (void)service::decode_meta(text);
  (void)service::decode_own(text);
  (void)service::decode_pulse(text);
  (void)probe::parse_history(text);
}

// A server that says this, in small pieces, and closes.
class SayingStream final : public store::redis::Stream {
 public:
  explicit SayingStream(std::string_view text) : text_(text) {}
  Status write(std::string_view, MonoTime, bool& sent) override {
    sent = true;
    return {};
  }
  Result<std::size_t> read(char* into, std::size_t size, MonoTime) override {
    const std::size_t count = std::min({size, std::size_t{7}, text_.size()});
    std::copy_n(text_.data(), count, into);
    text_.remove_prefix(count);
    return count;
  }
  bool quiet() override { return true; }
  int fd() const override { return -1; }

 private:
  std::string_view text_;
};

void fuzz_resp(std::string_view text) {
  SayingStream stream(text);
  store::redis::ReplyReader reader(stream);
  while (reader.read(MonoTime{})) {
  }
}

void fuzz_etcd(std::string_view text) {
  boost::system::error_code error;
  const auto value = boost::json::parse(boost::json::string_view(text.data(), text.size()), error);
  if (error || !value.is_object()) return;
  (void)store::etcd::parse_key_value(value.as_object());
  (void)store::etcd::parse_txn(value.as_object());
  (void)store::etcd::revision_of(value.as_object());
}

void fuzz_do(std::string_view text) {
  const auto unpacked = store::durable::unpacked(text);
  must(!unpacked ||
       store::durable::unpacked(store::durable::packed(*unpacked)).value() == *unpacked);
  must(store::durable::unpacked(store::durable::packed(text)).value() == text);
  boost::system::error_code error;
  const auto value = boost::json::parse(boost::json::string_view(text.data(), text.size()), error);
  if (error || !value.is_object()) return;
  const auto& said = value.as_object();
  (void)store::durable::parse_reading(said, {"k"});
  (void)store::durable::parse_page(said);
  (void)store::durable::parse_count(said);
  (void)store::durable::parse_about(said);
  const auto commit = store::durable::parse_commit(said, {store::Step{}});
  if (!commit) return;
  if (const auto* conflict = std::get_if<store::Conflict>(&*commit)) must(conflict->step == 0);
}

void fuzz_git(std::string_view text) {
  const auto lines = guard::parse_porcelain(text);
  for (const auto& line : lines) must(guard::find_line(lines, line.ref) != nullptr);
  (void)guard::parse_git_fence(text);
  (void)guard::parse_fence_commit(text);
}

}  // namespace

extern "C" int FUZZ_ENTRY(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 7) {
    case 0: fuzz_fences(text); break;
    case 1: fuzz_log(text); break;
    case 2: fuzz_records(text); break;
    case 3: fuzz_resp(text); break;
    case 4: fuzz_etcd(text); break;
    case 6: fuzz_do(text); break;
    default: fuzz_git(text); break;
  }
  return 0;
}
