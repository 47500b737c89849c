// What strangers send: HTTP heads and bodies, targets, JSON. Read, and never a crash, an overrun or
// an answer that contradicts itself. Built and run by tools/fuzz.sh (libFuzzer).
#include <cstdint>

#include "api/queue_wire.h"
#include "api/slots_json.h"
#include "api/wire.h"
#include "base/json_value.h"
#include "net/http/message.h"
#include "server/query.h"
#include "tests/fuzz/entry.h"

namespace {

using stint::fuzz::must;

void read_body(const stint::net::http::RequestHead& head, std::string_view rest) {
  const auto framing = stint::net::http::framing_of(head);
  if (!framing) return;
  stint::net::http::BodyReader body(*framing);
  while (!body.done()) {
    const auto piece = body.next(rest);
    if (!piece || piece->consumed == 0) return;
    must(piece->consumed <= rest.size() && piece->data.size() <= piece->consumed);
    rest.remove_prefix(piece->consumed);
  }
}

void read_json(std::string_view text) {
  const auto value = stint::JsonValue::parse(text);
  if (!value) return;
  stint::JsonFields fields(*value);
  (void)fields.text("resource");
  (void)fields.token("token");
  (void)fields.millis("ttl_ms");
  (void)fields.texts("resources");
  (void)stint::api::read_offer(fields);
  fields.refuse_others();
  (void)fields.done();
  (void)stint::api::parse_granted(*value);
  (void)stint::api::parse_held(*value);
  (void)stint::api::parse_act(*value);
  (void)stint::api::parse_event(*value);
  (void)stint::api::parse_error(*value);
  (void)stint::api::parse_word(*value);
  (void)stint::api::parse_item(*value);
  (void)stint::api::parse_claim(*value);
  (void)stint::api::parse_item_lost(*value);
  (void)stint::api::parse_decided(*value);
  (void)stint::api::parse_history(*value);
  (void)stint::api::parse_skip(*value);
  (void)stint::api::parse_rule(*value, [](const std::string&) { return stint::core::Zone(); });
  stint::JsonFields item(*value);
  (void)stint::api::read_content(item, "payload");
  (void)stint::api::read_follow_ups(item);
}

}  // namespace

extern "C" int FUZZ_ENTRY(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_json(text);
  (void)stint::server::parse_target(text);
  const auto end = stint::net::http::find_head_end(text);
  if (end && *end > 0) {
    must(*end <= text.size());
    const auto head = stint::net::http::parse_request(text.substr(0, *end));
    if (head) {
      (void)stint::server::parse_target(head->target);
      read_body(*head, text.substr(*end));
    }
  }
  return 0;
}
