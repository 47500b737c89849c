#include "tests/support/pgbouncer.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "tests/support/loopback.h"

namespace stint::test {
namespace {

std::string program() {
  const std::string found = find_program("pgbouncer");
  return found.empty() ? find_program("/usr/sbin/pgbouncer") : found;
}

}  // namespace

std::string PgBouncer::missing() {
  return program().empty() ? "pgbouncer is not installed: apt-get install pgbouncer" : "";
}

std::string PgBouncer::url() const {
  return cat("postgres://postgres@127.0.0.1:", port(), "/postgres");
}

bool PgBouncer::answers(Millis /*deadline*/) const { return bool(connect_loopback(port())); }

Status PgBouncer::prepare() {
  const std::string file = folder() + "/pgbouncer.ini";
  write_text(file,
             cat("[databases]\n* = host=127.0.0.1 port=", server_port_,
                 " user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
                 "listen_port = ",
                 port(), "\nauth_type = any\npool_mode = transaction\ndefault_pool_size = ",
                 connections_, "\nunix_socket_dir =\n",
                 ignored_.empty() ? "" : cat("ignore_startup_parameters = ", ignored_, "\n")));
  ::chmod(file.c_str(), 0644);
  if (::geteuid() != 0) return {};
  const passwd* nobody = ::getpwnam("nobody");
  if (nobody == nullptr || ::chown(folder().c_str(), nobody->pw_uid, nobody->pw_gid) != 0) {
    return unavailable("the folder cannot be given to the user nobody");
  }
  return {};
}

Command PgBouncer::command() const {
  std::vector<std::string> argv = {program(), folder() + "/pgbouncer.ini"};
  if (::geteuid() == 0) {
    argv.insert(argv.begin(), {"setpriv", "--reuid", "nobody", "--regid", "nogroup",
                               "--clear-groups", "--pdeathsig", "KILL", "--"});
  }
  return {.argv = std::move(argv)};
}

}  // namespace stint::test
