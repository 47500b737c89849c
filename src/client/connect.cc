#include <fstream>

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

// Before anything is asked: what is wrong with the URL is not the server's doing.
Status check_address(const net::Address& address) {
  if (address.hosts.size() != 1) return invalid("an http: store names exactly one host");
  if (!address.user.empty() || !address.password.empty()) {
    return invalid(cat("a server is not asked by a user and a password (", address.printable,
                       "): leave them out of the URL, and give a key by STINT_KEY or "
                       "STINT_KEY_FILE"));
  }
  for (const char* name : {"cacert", "cert", "key"}) {
    const auto found = address.options.find(name);
    if (found == address.options.end()) continue;
    std::ifstream file(found->second);
    if (file.get(); file.good()) continue;
    return invalid(cat("the store URL's option ", name, ": ", quoted(found->second),
                       " cannot be read, or is empty"));
  }
  return {};
}

}  // namespace

OpenedClient connect(const ConnectRequest& request, const Clock& clock) {
  if (auto fine = check_address(request.address); !fine) return fine.error();
  auto client = std::make_unique<Client>(request, clock);
  if (auto begun = client->begin(request); !begun) return begun.error();
  return std::unique_ptr<Connected>(std::move(client));
}

}  // namespace stint::client
