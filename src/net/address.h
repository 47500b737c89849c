// A URL of a server, taken apart: scheme://user:password@host:port,host:port/path?name=value&...
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace stint::net {

struct Host {
  std::string name;        // as in the URL; an IPv6 address without its brackets
  std::uint16_t port = 0;  // 0: not given
};

struct Address {
  std::string scheme;
  std::string user;      // percent-decoded
  std::string password;  // percent-decoded; never to be printed
  std::vector<Host> hosts;
  std::string path;  // what stands after the hosts and a slash, percent-decoded
  std::map<std::string, std::string> options;  // percent-decoded
  std::string whole;                           // as given
  std::string printable;                       // without its secrets
};

}  // namespace stint::net
