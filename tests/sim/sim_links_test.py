#!/usr/bin/env python3
"""sim_links_test.py MAP: the simulation runs the program's own objects.

Reads the linker's map. Every function of the product in the simulation comes from the static rooms that
`stint` and its modules are linked from, but for those that stand in for the operating system, the network and the modules
(docs/internals/simulation.md).
"""
import re
import sys

# What must be there, and from which room.
WANTED = {
    'stint::holder::run(': 'holder', 'stint::holder::take(': 'holder', 'stint::holder::Keeper::step(': 'holder',
    'stint::holder::KeeperThread::loop(': 'holder', 'stint::holder::Supervisor::run(': 'holder',
    'stint::core::HolderPolicy::renewed(': 'core', 'stint::core::admit(': 'core', 'stint::core::seal(': 'core',
    'stint::service::LeaseService::acquire(': 'service', 'stint::service::FenceService::admit(': 'service',
    'stint::service::QueueService::claim(': 'service', 'stint::service::QueueService::tend(': 'service',
    'stint::service::SlotService::decide(': 'service', 'stint::service::begin_life(': 'service',
    'stint::service::recover(': 'service', 'stint::schedule::Scheduler::step(': 'schedule',
    'stint::queue::work(': 'queue', 'stint::queue::ItemLeases::renew(': 'queue',
    'stint::guard::write_file(': 'guard', 'stint::guard::seal_file(': 'guard', 'stint::guard::seal_site(': 'guard',
    'stint::guard::publish_directory(': 'guard', 'stint::guard::seal_directory(': 'guard',
    'stint::guard::land(': 'guard', 'stint::app::seal_by_order(': 'app',
    'stint::store::MemoryStore::commit(': 'store_memory', 'stint::app::guards(': 'app',
    'stint::guard::admit_sqlite(': 'guard', 'stint::guard::seal_sqlite(': 'guard',
    'stint::app::run_proxy(': 'app', 'stint::guard::http::open_proxy(': 'guard_http',
    'stint::guard::http::Gate::way(': 'guard_http', 'stint::guard::http::read_shown(': 'guard_http',
    'stint::guard::http::seal_proxy(': 'guard_http',
    'stint::guard::push_git(': 'guard', 'stint::guard::seal_git(': 'guard', 'stint::guard::Pushing::run(': 'guard',
    'stint::guard::Pushing::settle(': 'guard', 'stint::guard::GitRemote::push(': 'guard',
    'stint::guard::fate_of_push(': 'guard', 'stint::guard::Git::run(': 'guard',
    'stint::guard::parse_git_fence(': 'guard', 'stint::guard::GitHint::read(': 'guard',
}
STAND_INS = ('sim_os.cc.o', 'sim_disk.cc.o', 'sim_files.cc.o', 'sim_git.cc.o', 'sim_net.cc.o', 'sim_modules.cc.o')
REPLACED = ('stint::os::Fd::', 'stint::os::EventFd::', 'stint::os::make_pipe', 'stint::os::spare_descriptors',
            'stint::os::errno_text', 'stint::os::pause_for', 'stint::os::wait_readable', 'stint::os::SystemRandom::',
            'stint::os::SystemClock::', 'stint::os::awake', 'stint::os::clock_name', 'stint::os::Signals::',
            'stint::os::Tree::', 'stint::os::Directory::', 'stint::os::facts_of', 'stint::os::write_whole',
            'stint::os::read_at', 'stint::os::sync_file', 'stint::os::overwrite(', 'stint::os::touch',
            'stint::os::try_lock', 'stint::os::file_error', 'stint::os::copy_bytes', 'stint::os::read_bytes',
            'stint::os::make_alike', 'stint::os::give_owner', 'stint::os::copy_tree', 'stint::os::remove_tree',
            'stint::os::walk_folders', 'stint::os::make_file', 'stint::os::link_over', 'stint::os::real_path', 'stint::os::filesystem_of',
            # os/files.cc and os/program.cc
            'stint::os::read_file', 'stint::os::write_file', 'stint::os::overwrite_file', 'stint::os::rename_file',
            'stint::os::remove_file', 'stint::os::exists', 'stint::os::may_write',
            'stint::os::is_executable', 'stint::os::make_directories',
            'stint::os::file_id', 'stint::os::FixedFile::', 'stint::os::open_to_read', 'stint::os::open_to_append',
            'stint::os::read_descriptor', 'stint::os::parent_of', 'stint::os::absolute', 'stint::os::without_detours', 'stint::os::run_program',
            'stint::os::own_program',
            # net/http/server.cc, net/curl_client.cc, app/modules.cc
            'stint::net::http::Server::start', 'stint::net::make_http_client', 'stint::app::open_module_',
            'stint::app::seal_by_module', 'stint::app::check_by_module', 'stint::app::connect_by_module',
            'stint::app::ask_doctor_by_module')


def functions(path):
    """(function, object) of every section .text; inline functions and templates have sections of their own."""
    current = None
    for line in open(path, errors='replace'):
        section = re.match(r' (\.\S+)(?:\s+0x\w+\s+0x\w+ (\S+))?$', line.rstrip())
        if section:
            current = section.group(2) if section.group(1) == '.text' else None
            continue
        symbol = re.match(r'\s+0x\w+\s+(stint::[\w:~]+.*)$', line.rstrip())
        if symbol and current:
            yield symbol.group(1), current


def main():
    found = list(functions(sys.argv[1]))
    problems = []
    for function, place in found:
        ours = re.search(r'src/libstint_\w+\.a\(', place)
        test = function.startswith('stint::test::')
        if ours or test:
            continue
        if not place.endswith(STAND_INS) or not function.startswith(REPLACED):
            problems.append(f'{function} is from {place}')
    for function, room in WANTED.items():
        places = [place for name, place in found if name.startswith(function)]
        if not any(f'src/libstint_{room}.a(' in place for place in places):
            problems.append(f'{function}...) is not from libstint_{room}.a but from {places}')
    print('\n'.join(problems))
    rooms = {re.search(r'libstint_(\w+)\.a', place).group(1) for _, place in found if 'src/libstint_' in place}
    stand_ins = [name for name, place in found if place.endswith(STAND_INS) and not name.startswith('stint::test::')]
    print(f'{len(found)} functions; rooms: {" ".join(sorted(rooms))}; {len(stand_ins)} stand in for what '
          f'is outside; {len(problems)} problems')
    return 1 if problems or not found else 0


sys.exit(main())
