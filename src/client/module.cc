#include "client/client.h"
#include "client/doctor.h"

extern "C" __attribute__((visibility("default"))) void stint_open_client(
    const stint::client::ConnectRequest& request, const stint::Clock& clock,
    stint::client::OpenedClient* answer) {
  *answer = stint::client::connect(request, clock);
}

extern "C" __attribute__((visibility("default"))) void stint_ask_doctor(
    const stint::client::DoctorRequest& request, const stint::Clock& clock, stint::Status* answer) {
  *answer = stint::client::ask_doctor(request, clock);
}
