"""Real PostgreSQL, Redis and etcd servers on loopback, for servers that stand on one store side by side."""
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile

from harness import until


def free_port():
    with socket.socket() as sock:
        sock.bind(('127.0.0.1', 0))
        return sock.getsockname()[1]


def answers(port):
    try:
        socket.create_connection(('127.0.0.1', port), timeout=1).close()
        return True
    except OSError:
        return False


class Database:
    def __init__(self, name):
        self.dir = tempfile.mkdtemp(prefix=f'stint-{name}-')
        self.port, self.end = free_port(), signal.SIGKILL

    def run(self, *words, **more):
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)

    def close(self):
        self.process.send_signal(self.end)
        self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


class Postgres(Database):
    def __init__(self):
        super().__init__('pg')
        where, self.end = '/usr/lib/postgresql/15/bin/', signal.SIGQUIT
        as_user = []
        if os.getuid() == 0:
            user = pwd.getpwnam('postgres')
            os.chown(self.dir, user.pw_uid, user.pw_gid)
            as_user = ['setpriv', '--reuid', 'postgres', '--regid', 'postgres', '--clear-groups']
        data = f'{self.dir}/data'
        subprocess.run([*as_user, where + 'initdb', '-D', data, '-A', 'trust', '-U', 'postgres', '--no-sync'], check=True,
                       capture_output=True, cwd='/')
        self.run(*as_user, where + 'postgres', '-D', data, '-c', 'listen_addresses=127.0.0.1', '-c', f'port={self.port}', '-c',
                 f'unix_socket_directories={self.dir}', cwd='/')
        self.url = f'postgres://postgres@127.0.0.1:{self.port}/postgres'
        until(lambda: subprocess.run([where + 'pg_isready', '-h', '127.0.0.1', '-p', str(self.port)],
                                     capture_output=True).returncode == 0, 'PostgreSQL is ready')


class Redis(Database):
    def __init__(self):
        super().__init__('redis')
        self.run('redis-server', '--port', str(self.port), '--bind', '127.0.0.1', '--dir', self.dir, '--save', '', '--appendonly', 'yes',
                 '--appendfsync', 'always')
        self.url = f'redis://127.0.0.1:{self.port}/0'
        until(lambda: answers(self.port), 'Redis answers')


class Etcd(Database):
    def __init__(self):
        super().__init__('etcd')
        peers, here = f'http://127.0.0.1:{free_port()}', f'http://127.0.0.1:{self.port}'
        self.run('etcd', '--data-dir', f'{self.dir}/data', '--listen-client-urls', here, '--advertise-client-urls', here,
                 '--listen-peer-urls', peers, '--initial-advertise-peer-urls', peers, '--initial-cluster', f'default={peers}')
        self.url = f'etcd://127.0.0.1:{self.port}'
        until(lambda: subprocess.run(['etcdctl', '--endpoints', here, 'endpoint', 'health'], env={**os.environ, 'ETCDCTL_API': '3'},
                                     capture_output=True).returncode == 0, 'etcd is ready')
