#include "store/etcd/txn.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"

namespace stint::store::etcd {
namespace {

std::string keys_json(const KeyRange& keys) {
  std::string out = cat(R"("key":")", base64(keys.from), '"');
  if (!keys.end.empty()) out += cat(R"(,"range_end":")", base64(keys.end), '"');
  return out;
}

Compare comparing(const KeyRange& keys, std::string_view target, std::string_view relation,
                  std::string_view field, std::string_view value) {
  return {cat('{', keys_json(keys), R"(,"target":")", target, R"(","result":")", relation, R"(",")",
              field, R"(":")", value, R"("})")};
}

std::string joined(const std::vector<Operation>& all, std::size_t from, std::size_t to) {
  std::string out;
  for (std::size_t i = from; i < to; ++i) {
    if (i > from) out += ',';
    out += all[i].json;
  }
  return out;
}

std::string grouped(const std::vector<Operation>& all, std::size_t size) {
  if (size == 0) return joined(all, 0, all.size());
  std::string out;
  for (std::size_t from = 0; from < all.size(); from += size) {
    out += cat(from == 0 ? "" : ",", R"({"request_txn":{"success":[)",
               joined(all, from, std::min(from + size, all.size())), "]}}");
  }
  return out;
}

// A nested transaction may have as many operations as the one around it leaves of the limit.
std::size_t group_size(std::size_t compares, std::size_t operations) {
  if (operations <= Txn::kLimit) return 0;
  for (std::size_t outer = std::max<std::size_t>(compares, 2); outer < Txn::kLimit; ++outer) {
    if (outer * (Txn::kLimit - outer) >= operations) return Txn::kLimit - outer;
  }
  return 1;
}

}  // namespace

KeyRange beginning_with(std::string prefix) {
  std::string end = prefix;
  while (!end.empty() && end.back() == '\xFF') end.pop_back();
  CHECK(!end.empty(), "a prefix without an end");
  end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return {std::move(prefix), std::move(end)};
}

std::string json_of(const RangeAsk& ask) {
  std::string out = cat('{', keys_json(ask.keys));
  const auto number = [&](std::string_view name, std::uint64_t value) {
    if (value != 0) out += cat(",\"", name, "\":\"", value, '"');
  };
  number("limit", ask.limit);
  number("min_create_revision", ask.created_from);
  number("max_create_revision", ask.created_to);
  if (ask.keys_only) out += R"(,"keys_only":true)";
  if (ask.count_only) out += R"(,"count_only":true)";
  if (ask.descending) out += R"(,"sort_order":"DESCEND","sort_target":"KEY")";
  return out + '}';
}

Operation range(const RangeAsk& ask) { return {cat(R"({"request_range":)", json_of(ask), '}')}; }

Operation get(std::string_view key) { return range({.keys = {std::string(key)}}); }

Operation put(std::string_view key, std::string_view value) {
  return {
      cat(R"({"request_put":{"key":")", base64(key), R"(","value":")", base64(value), R"("}})")};
}

Operation put_on_lease(std::string_view key, std::string_view value, LeaseId lease) {
  return {cat(R"({"request_put":{"key":")", base64(key), R"(","value":")", base64(value),
              R"(","prev_kv":true,"lease":")", lease, R"("}})")};
}

Operation take_away(const KeyRange& keys) {
  return {cat(R"({"request_delete_range":{)", keys_json(keys), R"(,"prev_kv":true}})")};
}

Operation remove(std::string_view key) {
  return {cat(R"({"request_delete_range":{"key":")", base64(key), R"("}})")};
}

Compare is_absent(const KeyRange& keys) {
  return comparing(keys, "CREATE", "EQUAL", "create_revision", "0");
}
Compare is_present(std::string_view key) {
  return comparing({std::string(key)}, "CREATE", "GREATER", "create_revision", "0");
}
Compare mod_revision_is(std::string_view key, std::uint64_t revision) {
  return comparing({std::string(key)}, "MOD", "EQUAL", "mod_revision", std::to_string(revision));
}
Compare lease_is(std::string_view key, LeaseId lease) {
  return comparing({std::string(key)}, "LEASE", "EQUAL", "lease", std::to_string(lease));
}
Compare value_below(const KeyRange& keys, std::string_view value) {
  return comparing(keys, "VALUE", "LESS", "value", base64(value));
}

std::size_t Txn::then(Operation one) {
  then_.push_back(std::move(one));
  return then_.size() - 1;
}

std::size_t Txn::otherwise(Operation one) {
  otherwise_.push_back(std::move(one));
  return otherwise_.size() - 1;
}

std::string Txn::json() const {
  CHECK(compares_.size() <= kMostCompares, "too many compares in one transaction");
  std::string out = R"({"compare":[)";
  for (const Compare& one : compares_) out += cat(&one == compares_.data() ? "" : ",", one.json);
  const std::size_t size = group_size(compares_.size(), std::max(then_.size(), otherwise_.size()));
  return cat(out, R"(],"success":[)", grouped(then_, size), R"(],"failure":[)",
             grouped(otherwise_, size), "]}");
}

}  // namespace stint::store::etcd
