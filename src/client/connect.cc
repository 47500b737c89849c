#include "base/text.h"
#include "client/faces.h"

namespace stint::client {
namespace {

class Client final : public Connected {
 public:
  Client(const ConnectRequest& request, const Clock& clock) : link_(request, clock) {}

  Status begin(const ConnectRequest& request) {
    auto reply = link_.get("/v1/store");
    if (!reply) return reply.error();
    if (reply->status != 200) return Link::error_of(*reply);
    JsonFields in(reply->json);
    in.require("generation");
    Facts facts{.generation = in.generation("generation"),
                .smallest_ttl = in.millis("smallest_ttl_ms")};
    caveat_ = in.text("caveat");
    if (auto ok = in.done(); !ok) return std::move(ok.error()).during("asking the server");
    if (request.pinned && *request.pinned != facts.generation) {
      return unavailable(cat("the store behind ", request.address.printable,
                             " is not the one with generation ", request.pinned->hex()));
    }
    leases_ = std::make_unique<HttpLeases>(link_, facts);
    return {};
  }

  api::Leases& leases() override { return *leases_; }
  api::Fences& fences() override { return fences_; }
  api::Events& events() override { return events_; }
  api::Keys& keys() override { return keys_; }
  api::Queue& queue() override { return queue_; }
  api::Slots& slots() override { return slots_; }
  std::string caveat() const override { return caveat_; }

 private:
  Link link_;
  std::unique_ptr<HttpLeases> leases_;
  HttpFences fences_{link_};
  HttpEvents events_{link_};
  HttpKeys keys_{link_};
  HttpQueue queue_{link_};
  HttpSlots slots_{link_};
  std::string caveat_;
};

}  // namespace

OpenedClient connect(const ConnectRequest& request, const Clock& clock) {
  if (request.address.hosts.size() != 1) return invalid("an http: store names exactly one host");
  auto client = std::make_unique<Client>(request, clock);
  if (auto begun = client->begin(request); !begun) return begun.error();
  return std::unique_ptr<Connected>(std::move(client));
}

}  // namespace stint::client
