#include "tests/conformance/served.h"

#include "base/check.h"
#include "client/client.h"
#include "server/server.h"

namespace stint::testing {
namespace {

class Here final : public Served {
 public:
  Here(const Behind& behind, Random& random, const Clock& clock) {
    server::ServeRequest request;
    request.listen = {.host = "127.0.0.1", .port = 0};
    request.backend = {.leases = &behind.leases,
                       .fences = &behind.fences,
                       .events = &behind.events,
                       .keys = nullptr,
                       .batch = dynamic_cast<api::BatchedLeases*>(&behind.leases),
                       .queue = behind.queue,
                       .answers = nullptr,
                       .slots = behind.slots,
                       .find_zone = [](const std::string&) { return core::Zone(); },
                       .list_slots = {}};
    request.limits.tend_every = Millis(0);  // nothing happens that the test did not ask for
    request.random = &random;
    request.demo = true;
    request.limits.store_threads = 8;
    request.log = [](const std::string&) {};
    auto server = server::open_server(request, clock);
    CHECK(server.has_value(), server ? "" : server.error().message.c_str());
    server_ = std::move(*server);
    client::ConnectRequest asked;
    asked.address.scheme = "http";
    asked.address.hosts = {{"127.0.0.1", server_->port()}};
    asked.timeout = Millis(30'000);
    asked.random = &random;
    auto client = client::connect(asked, clock);
    CHECK(client.has_value(), client ? "" : client.error().message.c_str());
    client_ = std::move(*client);
  }
  api::Leases& leases() override { return client_->leases(); }
  api::Fences& fences() override { return client_->fences(); }
  api::Events& events() override { return client_->events(); }
  api::Queue& queue() override { return client_->queue(); }
  api::Slots& slots() override { return client_->slots(); }

 private:
  std::unique_ptr<server::Server> server_;
  std::unique_ptr<client::Connected> client_;
};

}  // namespace

std::unique_ptr<Served> serve(const Behind& behind, Random& random, const Clock& clock) {
  return std::make_unique<Here>(behind, random, clock);
}

}  // namespace stint::testing
