#include "client/doctor.h"

#include "base/text.h"
#include "client/link.h"

namespace stint::client {
namespace {

// The server ends an examination after half a minute by itself.
constexpr Millis kLongest{90'000};
constexpr Millis kBetween{100};

class Asking {
 public:
  Asking(const DoctorRequest& request, const Clock& clock)
      : request_(request), clock_(clock), link_(request.server, clock) {}

  Status run() {
    const MonoTime latest = clock_.mono() + kLongest;
    auto reply = link_.post("/v1/doctor", "{}", Link::Again::Look);
    while (true) {
      if (!reply) return reply.error();
      auto running = take(*reply);
      if (!running) return running.error();
      if (!*running) return {};
      if (clock_.mono() > latest) return unavailable("the server's doctor comes to no end");
      request_.pause(kBetween);
      reply = link_.get("/v1/doctor");
    }
  }

 private:
  // Tells what is new; true: there is more to come.
  Result<bool> take(const Link::Reply& reply) {
    if (reply.status != 200) return Link::error_of(reply);
    JsonFields in(reply.json);
    in.require("running");
    const bool running = in.flag("running");
    const auto began = in.moment("began_at_ms");
    const std::string fault = in.text("fault");
    const JsonValue* list = in.find("findings");
    if (auto ok = in.done(); !ok) return odd(ok.error().message);
    if (list == nullptr || list->if_list() == nullptr) return odd("no findings");
    if (began_ && began != began_) {
      return unavailable(
          "another examination was told than the one that was begun: the server was started anew, "
          "or several answer at this address; ask again, or name one of them");
    }
    began_ = began;
    const auto& findings = *list->if_list();
    for (; told_ < findings.size(); ++told_) {
      JsonFields one(findings[told_]);
      for (const char* name : {"check", "level", "text"}) one.require(name);
      const ToldFinding finding{
          .check = one.text("check"), .level = one.text("level"), .text = one.text("text")};
      if (auto ok = one.done(); !ok) return odd(ok.error().message);
      request_.tell(finding);
    }
    if (!running && !fault.empty()) return unavailable(fault);
    if (!running && !began_) return odd("it began no examination");
    return running;
  }

  static Error odd(const std::string& what) {
    return unavailable(cat("the server's answer: ", what));
  }

  const DoctorRequest& request_;
  const Clock& clock_;
  Link link_;
  std::optional<WallTime> began_;
  std::size_t told_ = 0;
};

}  // namespace

Status ask_doctor(const DoctorRequest& request, const Clock& clock) {
  return Asking(request, clock).run();
}

}  // namespace stint::client
