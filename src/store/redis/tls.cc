// TLS between two buffers in memory: the socket itself stays in os/, with its deadlines and without
// signals.
#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>

#include "base/text.h"
#include "os/dial.h"
#include "store/redis/stream.h"

namespace stint::store::redis {
namespace {

struct FreeContext {
  void operator()(SSL_CTX* context) const { ::SSL_CTX_free(context); }
};
struct FreeSession {
  void operator()(SSL* session) const { ::SSL_free(session); }
};
using Context = std::unique_ptr<SSL_CTX, FreeContext>;
using Session = std::unique_ptr<SSL, FreeSession>;

std::string last_reason() {
  const char* const reason = ::ERR_reason_error_string(::ERR_peek_last_error());
  ::ERR_clear_error();
  return reason == nullptr ? "no reason given" : reason;
}

class TlsStream final : public Stream {
 public:
  TlsStream(os::Fd fd, Session session) : fd_(std::move(fd)), session_(std::move(session)) {
    in_ = ::BIO_new(::BIO_s_mem());
    out_ = ::BIO_new(::BIO_s_mem());
    ::SSL_set_bio(session_.get(), in_, out_);  // owned by the session from here on
  }

  Status handshake(MonoTime until) {
    bool sent = false;
    while (true) {
      ::ERR_clear_error();
      const int done = ::SSL_connect(session_.get());
      const int why = ::SSL_get_error(session_.get(), done);
      if (auto ok = flush(until, sent); !ok) return ok.error();
      if (done == 1) return {};
      if (why != SSL_ERROR_WANT_READ) return unavailable(cat("TLS: ", refusal()));
      auto more = fill(until);
      if (!more) return more.error();
      if (*more == 0) return unavailable("TLS: the server closed the connection");
    }
  }

  Status write(std::string_view bytes, MonoTime until, bool& sent) override {
    ::ERR_clear_error();
    // A buffer in memory takes everything at once.
    std::size_t took = 0;
    if (!bytes.empty() && (::SSL_write_ex(session_.get(), bytes.data(), bytes.size(), &took) != 1 ||
                           took != bytes.size())) {
      return unavailable(cat("TLS: ", last_reason()));
    }
    return flush(until, sent);
  }

  Result<std::size_t> read(char* into, std::size_t size, MonoTime until) override {
    while (true) {
      ::ERR_clear_error();
      std::size_t got = 0;
      const int done = ::SSL_read_ex(session_.get(), into, size, &got);
      if (done == 1) return got;
      const int why = ::SSL_get_error(session_.get(), done);
      if (why == SSL_ERROR_ZERO_RETURN) return std::size_t{0};
      if (why != SSL_ERROR_WANT_READ) return unavailable(cat("TLS: ", last_reason()));
      bool sent = false;
      if (auto ok = flush(until, sent); !ok) return ok.error();
      auto more = fill(until);
      if (!more) return more.error();
      if (*more == 0) return std::size_t{0};
    }
  }

  // What arrives unasked may be of TLS itself (session tickets): only then it is still quiet.
  bool quiet() override {
    while (!os::quiet(fd_.get())) {
      auto more = fill(MonoTime{});
      if (!more || *more == 0) return false;
      char byte = 0;
      std::size_t got = 0;
      ::ERR_clear_error();
      const int done = ::SSL_peek_ex(session_.get(), &byte, 1, &got);
      if (done == 1 || ::SSL_get_error(session_.get(), done) != SSL_ERROR_WANT_READ) return false;
    }
    return true;
  }

  bool pending() const override {
    return ::SSL_has_pending(session_.get()) == 1 || ::BIO_ctrl_pending(in_) > 0;
  }
  int fd() const override { return fd_.get(); }

 private:
  std::string refusal() const {
    const long verified = ::SSL_get_verify_result(session_.get());
    if (verified == X509_V_OK) return last_reason();
    ::ERR_clear_error();
    return cat("the server's certificate is not accepted: ",
               ::X509_verify_cert_error_string(verified));
  }

  Status flush(MonoTime until, bool& sent) {
    std::array<char, 16'384> piece{};
    while (::BIO_ctrl_pending(out_) > 0) {
      const int size = ::BIO_read(out_, piece.data(), static_cast<int>(piece.size()));
      if (size <= 0) return unavailable("TLS: lost its own bytes");
      std::string_view rest(piece.data(), static_cast<std::size_t>(size));
      while (!rest.empty()) {
        const auto went = os::send_some(fd_.get(), rest, until);
        if (!went) return went.error();
        sent = true;
        rest.remove_prefix(*went);
      }
    }
    return {};
  }

  Result<std::size_t> fill(MonoTime until) {
    std::array<char, 16'384> piece{};
    auto got = os::receive_some(fd_.get(), piece.data(), piece.size(), until);
    if (got && *got > 0) ::BIO_write(in_, piece.data(), static_cast<int>(*got));
    return got;
  }

  os::Fd fd_;
  Session session_;
  BIO* in_ = nullptr;
  BIO* out_ = nullptr;
};

Result<Context> make_context(const TlsOptions& options) {
  Context context(::SSL_CTX_new(::TLS_client_method()));
  if (!context) return unavailable(cat("TLS: ", last_reason()));
  ::SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  ::SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  const bool trusts = options.cacert.empty()
                          ? ::SSL_CTX_set_default_verify_paths(context.get()) == 1
                          : ::SSL_CTX_load_verify_file(context.get(), options.cacert.c_str()) == 1;
  if (!trusts) {
    return invalid(cat("cacert: cannot read ", quoted(options.cacert), ": ", last_reason()));
  }
  if (options.cert.empty()) return context;
  if (::SSL_CTX_use_certificate_chain_file(context.get(), options.cert.c_str()) != 1) {
    return invalid(cat("cert: cannot read ", quoted(options.cert), ": ", last_reason()));
  }
  if (::SSL_CTX_use_PrivateKey_file(context.get(), options.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      ::SSL_CTX_check_private_key(context.get()) != 1) {
    return invalid(cat("key: ", quoted(options.key), " is not the key of cert: ", last_reason()));
  }
  return context;
}

bool is_address(const std::string& host) {
  std::array<unsigned char, 16> bytes{};
  return ::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

}  // namespace

Result<std::unique_ptr<Stream>> start_tls(os::Fd fd, const TlsOptions& options, MonoTime until) {
  auto context = make_context(options);
  if (!context) return context.error();
  Session session(::SSL_new(context->get()));
  if (!session) return unavailable(cat("TLS: ", last_reason()));
  const bool named = is_address(options.host)
                         ? ::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(session.get()),
                                                           options.host.c_str()) == 1
                         : ::SSL_set1_host(session.get(), options.host.c_str()) == 1 &&
                               ::SSL_set_tlsext_host_name(session.get(), options.host.c_str()) == 1;
  if (!named) return unavailable(cat("TLS: ", last_reason()));
  auto stream = std::make_unique<TlsStream>(std::move(fd), std::move(session));
  if (auto ok = stream->handshake(until); !ok) return ok.error();
  return std::unique_ptr<Stream>(std::move(stream));
}

}  // namespace stint::store::redis
