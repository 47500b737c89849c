// What a server's doctor finds on the server's store, asked for over HTTP: `POST /v1/doctor`
// begins, `GET /v1/doctor` tells how far it is.
#pragma once

#include <functional>

#include "client/client.h"

namespace stint::client {

struct ToldFinding {
  std::string check;
  std::string level;  // ok, warn, fail
  std::string text;
};

struct DoctorRequest {
  ConnectRequest server;
  std::function<void(const ToldFinding&)> tell;  // called with each finding as it comes
  std::function<void(Nanos)> pause;              // between two questions
};

// Until the examination is over. REQUIRES: connect() has looked at the address.
// Code::Denied: this key may not have it.
Status ask_doctor(const DoctorRequest& request, const Clock& clock);

// The entry of the module; see store/module.h.
using DoctorEntry = void(const DoctorRequest& request, const Clock& clock, Status* answer);
constexpr const char* kDoctorEntry = "stint_ask_doctor";

}  // namespace stint::client
