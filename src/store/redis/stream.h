// A stream of bytes to a server, in the clear or by TLS, with deadlines.
//
// Thread safety: one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "os/fd.h"

namespace stint::store::redis {

class Stream {
 public:
  virtual ~Stream() = default;
  // `sent` becomes true as soon as the first byte may have gone out.
  virtual Status write(std::string_view bytes, MonoTime until, bool& sent) = 0;
  // Zero: the peer has closed.
  virtual Result<std::size_t> read(char* into, std::size_t size, MonoTime until) = 0;
  // True if a question can be asked: the peer has not closed and said nothing unasked.
  virtual bool quiet() = 0;
  // Bytes that were received but not read yet: poll() does not show those.
  virtual bool pending() const { return false; }
  virtual int fd() const = 0;
};

class PlainStream final : public Stream {
 public:
  explicit PlainStream(os::Fd fd) : fd_(std::move(fd)) {}
  Status write(std::string_view bytes, MonoTime until, bool& sent) override;
  Result<std::size_t> read(char* into, std::size_t size, MonoTime until) override;
  bool quiet() override;
  int fd() const override { return fd_.get(); }

 private:
  os::Fd fd_;
};

struct TlsOptions {
  std::string host;    // whose name the certificate must bear
  std::string cacert;  // a file; empty: the system's authorities
  std::string cert;    // a file: the client's own
  std::string key;     // a file
};

// The certificate is always verified: there is no way to turn that off.
Result<std::unique_ptr<Stream>> start_tls(os::Fd fd, const TlsOptions& options, MonoTime until);

}  // namespace stint::store::redis
