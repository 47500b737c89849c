#include <openssl/ssl.h>

#include "base/text.h"
#include "net/http/wire.h"

namespace stint::net::http {

Result<std::shared_ptr<TlsContext>> load_tls(const ServerTls& files) {
  if (files.certificate.empty()) return std::shared_ptr<TlsContext>();
  auto context = std::make_shared<TlsContext>(TlsContext::tls_server);
  ::SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  // An idle connection keeps no buffers.
  ::SSL_CTX_set_mode(context->native_handle(), SSL_MODE_RELEASE_BUFFERS);
  error_code failed;
  context->use_certificate_chain_file(files.certificate, failed);
  if (failed)
    return invalid(cat("the certificate ", quoted(files.certificate), ": ", failed.message()));
  context->use_private_key_file(files.key, TlsContext::pem, failed);
  if (failed) return invalid(cat("the key ", quoted(files.key), ": ", failed.message()));
  if (::SSL_CTX_check_private_key(context->native_handle()) != 1) {
    return invalid(cat("the key ", quoted(files.key), " does not belong to the certificate"));
  }
  if (!files.client_authorities.empty()) {
    context->load_verify_file(files.client_authorities, failed);
    if (failed) {
      return invalid(
          cat("the authorities ", quoted(files.client_authorities), ": ", failed.message()));
    }
    context->set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert,
                             failed);
  }
  return context;
}

}  // namespace stint::net::http
