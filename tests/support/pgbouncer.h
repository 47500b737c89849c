// PgBouncer in transaction mode before a PostgreSQL server of the tests.
#pragma once

#include "tests/support/servers.h"

namespace stint::test {

class PgBouncer final : public Server {
 public:
  explicit PgBouncer(std::uint16_t server_port) : server_port_(server_port) {}
  ~PgBouncer() override { stop(); }
  static std::string missing();
  std::string url() const override;
  bool answers(Millis deadline) const override;

 protected:
  Status prepare() override;
  Command command() const override;

 private:
  const std::uint16_t server_port_;
};

}  // namespace stint::test
