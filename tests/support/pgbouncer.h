// PgBouncer in transaction mode before a PostgreSQL server of the tests.
#pragma once

#include "tests/support/servers.h"

namespace stint::test {

class PgBouncer final : public Server {
 public:
  // `ignored`: startup parameters that it takes and forgets; others it refuses.
  explicit PgBouncer(std::uint16_t server_port, int connections = 3, std::string ignored = "")
      : server_port_(server_port), connections_(connections), ignored_(std::move(ignored)) {}
  ~PgBouncer() override { stop(); }
  static std::string missing();
  std::string url() const override;
  bool answers(Millis deadline) const override;

 protected:
  Status prepare() override;
  Command command() const override;

 private:
  const std::uint16_t server_port_;
  const int connections_;
  const std::string ignored_;
};

}  // namespace stint::test
