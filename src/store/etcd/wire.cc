#include "store/etcd/wire.h"

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <charconv>

#include "base/text.h"

namespace stint::store::etcd {
namespace json = boost::json;
namespace {

constexpr int kDeepest = 4;

Result<std::string> bytes_field(const json::object& from, std::string_view name) {
  auto text = text_field(from, name);
  if (!text) return text.error();
  return from_base64(*text);
}

Result<std::uint64_t> count_field(const json::object& from, std::string_view name) {
  const auto number = number_field(from, name);
  if (!number) return number.error();
  if (*number < 0) return damaged(name);
  return static_cast<std::uint64_t>(*number);
}

Result<const json::object*> object_field(const json::object& from, std::string_view name) {
  const json::value* value = from.if_contains(name);
  if (value == nullptr || !value->is_object()) return damaged(name);
  return &value->get_object();
}

Status parse_list(const json::object& from, std::string_view name, std::vector<KeyValue>& out) {
  const json::value* list = from.if_contains(name);
  if (list == nullptr) return {};
  if (!list->is_array()) return damaged(name);
  for (const json::value& one : list->get_array()) {
    if (!one.is_object()) return damaged(name);
    auto pair = parse_key_value(one.get_object());
    if (!pair) return pair.error();
    out.push_back(std::move(*pair));
  }
  return {};
}

Result<OpAnswer> parse_operation(const json::object& from) {
  OpAnswer out;
  if (from.contains("response_put")) {
    auto put = object_field(from, "response_put");
    if (!put) return put.error();
    if (!(*put)->contains("prev_kv")) return out;
    auto before = object_field(**put, "prev_kv");
    if (!before) return before.error();
    auto pair = parse_key_value(**before);
    if (!pair) return pair.error();
    out.found.push_back(std::move(*pair));
    return out;
  }
  const bool range = from.contains("response_range");
  auto body = object_field(from, range ? "response_range" : "response_delete_range");
  if (!body) return body.error();
  if (auto ok = parse_list(**body, range ? "kvs" : "prev_kvs", out.found); !ok) return ok.error();
  if (!range) return out;
  const auto more = bool_field(**body, "more");
  const auto count = count_field(**body, "count");
  if (!more || !count) return damaged("range");
  out.more = *more;
  out.count = *count;
  return out;
}

Status parse_operations(const json::object& from, int depth, std::vector<OpAnswer>& out) {
  const json::value* list = from.if_contains("responses");
  if (list == nullptr) return {};
  if (!list->is_array() || depth > kDeepest) return damaged("responses");
  for (const json::value& one : list->get_array()) {
    if (!one.is_object()) return damaged("responses");
    if (one.get_object().contains("response_txn")) {
      auto nested = object_field(one.get_object(), "response_txn");
      if (!nested) return nested.error();
      if (auto ok = parse_operations(**nested, depth + 1, out); !ok) return ok.error();
      continue;
    }
    auto operation = parse_operation(one.get_object());
    if (!operation) return operation.error();
    out.push_back(std::move(*operation));
  }
  return {};
}

}  // namespace

Error damaged(std::string_view what) {
  return unavailable(cat("etcd gave an answer that is none (", printable(what), ")"));
}

Result<std::string> from_base64(std::string_view text) {
  auto bytes = decode_base64(text);
  if (!bytes) return damaged("base64");
  return std::move(*bytes);
}

Result<std::int64_t> number_field(const json::object& from, std::string_view name) {
  const json::value* value = from.if_contains(name);
  if (value == nullptr) return 0;
  if (value->is_int64()) return value->get_int64();
  if (!value->is_string()) return damaged(name);
  const json::string& text = value->get_string();
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return damaged(name);
  return number;
}

Result<bool> bool_field(const json::object& from, std::string_view name) {
  const json::value* value = from.if_contains(name);
  if (value == nullptr) return false;
  if (!value->is_bool()) return damaged(name);
  return value->get_bool();
}

Result<std::string> text_field(const json::object& from, std::string_view name) {
  const json::value* value = from.if_contains(name);
  if (value == nullptr) return std::string();
  if (!value->is_string()) return damaged(name);
  return std::string(value->get_string());
}

Result<KeyValue> parse_key_value(const json::object& from) {
  KeyValue out;
  auto key = bytes_field(from, "key");
  auto value = bytes_field(from, "value");
  const auto created = count_field(from, "create_revision");
  const auto modified = count_field(from, "mod_revision");
  const auto lease = number_field(from, "lease");
  if (!key || !value || !created || !modified || !lease) return damaged("record");
  out.key = std::move(*key);
  out.value = std::move(*value);
  out.created = *created;
  out.modified = *modified;
  out.lease = *lease;
  return out;
}

Result<std::uint64_t> revision_of(const json::object& answer) {
  auto header = object_field(answer, "header");
  if (!header) return header.error();
  const auto revision = count_field(**header, "revision");
  if (!revision || *revision == 0) return damaged("revision");
  return *revision;
}

Result<TxnAnswer> parse_txn(const json::object& from) {
  TxnAnswer out;
  const auto succeeded = bool_field(from, "succeeded");
  const auto revision = revision_of(from);
  if (!succeeded || !revision) return damaged("transaction");
  out.succeeded = *succeeded;
  out.revision = *revision;
  if (auto ok = parse_operations(from, 0, out.operations); !ok) return ok.error();
  return out;
}

}  // namespace stint::store::etcd
