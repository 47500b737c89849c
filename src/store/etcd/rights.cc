#include "store/etcd/rights.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "base/text.h"
#include "store/etcd/wire.h"

namespace stint::store::etcd {
namespace json = boost::json;
namespace {

using Level = Finding::Level;

constexpr std::string_view kToTheEnd{"\0", 1};  // as the end of a range: there is none

bool covers(const KeyRange& given, const KeyRange& needed) {
  if (given.end.empty() || given.from > needed.from) return false;
  return given.end == kToTheEnd || given.end >= needed.end;
}

// Reading may come from one role, writing from another.
bool may(const std::vector<Permission>& permissions, bool Permission::*what,
         const KeyRange& needed) {
  return std::ranges::any_of(
      permissions, [&](const Permission& one) { return one.*what && covers(one.keys, needed); });
}

std::vector<std::string> texts(const json::object& from, std::string_view name) {
  std::vector<std::string> out;
  const json::value* list = from.if_contains(name);
  if (list == nullptr || !list->is_array()) return out;
  for (const json::value& one : list->get_array()) {
    if (one.is_string()) out.emplace_back(one.get_string());
  }
  return out;
}

void add_permissions(const json::object& role, std::vector<Permission>& out) {
  const json::value* list = role.if_contains("perm");
  if (list == nullptr || !list->is_array()) return;
  for (const json::value& one : list->get_array()) {
    if (!one.is_object()) continue;
    const json::object& perm = one.get_object();
    const auto kind = text_field(perm, "permType");  // READ, the first of them, is left out
    const auto key = text_field(perm, "key");
    const auto end = text_field(perm, "range_end");
    if (!kind || !key || !end) continue;
    const auto from = from_base64(*key);
    const auto to = from_base64(*end);
    if (!from || !to) continue;
    out.push_back({.reads = *kind != "WRITE",
                   .writes = *kind == "WRITE" || *kind == "READWRITE",
                   .keys = {*from, *to}});
  }
}

std::string question(std::string_view field, std::string_view value) {
  return json::serialize(json::object{{field, value}});
}

}  // namespace

Finding judge_rights(const Caller& caller, const std::vector<std::string>& roles,
                     const std::vector<Permission>& permissions, const KeyRange& needed) {
  if (caller.user.empty() && caller.certificate) {
    return {Level::Ok, "permissions",
            "etcd asks for no user; who has no certificate is not let in if it asks for one"};
  }
  if (caller.user.empty()) {
    return {Level::Warn, "permissions",
            "etcd asks for no user: whoever reaches it may change any lease; turn its "
            "authentication on, or ask for client certificates"};
  }
  const std::string who = cat("the user ", quoted(printable(caller.user)));
  if (std::ranges::find(roles, "root") != roles.end()) {
    return {Level::Warn, "permissions",
            cat(who, " has the role root: Stint needs one with readwrite on ",
                quoted(printable(needed.from)), ", no more")};
  }
  std::string lacks = may(permissions, &Permission::reads, needed) ? "" : "read";
  if (!may(permissions, &Permission::writes, needed)) lacks += "write";
  if (lacks.empty()) {
    return {Level::Ok, "permissions",
            cat(who, " may read and write ", quoted(printable(needed.from)))};
  }
  return {
      Level::Fail, "permissions",
      cat(who, " has no role with ", lacks, " on all of ", quoted(printable(needed.from)),
          ": etcdctl role grant-permission ROLE --prefix=true readwrite ", printable(needed.from))};
}

Finding ask_rights(Gateway& gateway, const Caller& caller, const KeyRange& needed,
                   const Deadline& deadline) {
  if (caller.user.empty()) return judge_rights(caller, {}, {}, needed);
  const auto unknown = [](const Error& why) {
    return Finding{Level::Warn, "permissions", cat("the user's roles are not told: ", why.message)};
  };
  const Reply user =
      gateway.ask("/v3/auth/user/get", question("name", caller.user), deadline, Twice::Harmless);
  if (!user) return unknown(*user.error);
  const auto roles = texts(user.body, "roles");
  std::vector<Permission> permissions;
  for (const std::string& role : roles) {
    if (role == "root") break;
    const Reply told =
        gateway.ask("/v3/auth/role/get", question("role", role), deadline, Twice::Harmless);
    if (!told) return unknown(*told.error);
    add_permissions(told.body, permissions);
  }
  return judge_rights(caller, roles, permissions, needed);
}

}  // namespace stint::store::etcd
