"""A real `stint serve`, asked by a client that is not ours: what goes over the wire is what counts.

Nothing here sleeps and hopes: until() waits for a condition, with a deadline that only a fault meets.
"""
import http.client
import http.server
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

STINT = os.environ.get('STINT_BINARY', os.path.join(os.path.dirname(__file__), '../../build/stint'))
PATIENCE = 60


def count(name, slice_):
    """How many: a slice in `make test`, the whole by an environment variable."""
    return int(os.environ.get(name, slice_))


def until(condition, what, patience=PATIENCE):
    deadline = time.monotonic() + patience
    while True:
        got = condition()
        if got:
            return got
        if time.monotonic() > deadline:
            raise AssertionError(f'never: {what}')
        time.sleep(0.01)


def claim():
    return os.urandom(16).hex()


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        return self.json['error']['code']

    def __repr__(self):
        return f'{self.status} {self.body[:300]!r}'


class Client:
    """One keep-alive connection."""

    def __init__(self, port, key=None, timeout=PATIENCE):
        self.port, self.key, self.timeout = port, key, timeout
        self.conn = http.client.HTTPConnection('127.0.0.1', port, timeout=timeout)

    def call(self, method, path, body=None, headers=None, raw=None):
        sent = dict(headers or {})
        if self.key:
            sent.setdefault('Authorization', f'Bearer {self.key}')
        data = raw if raw is not None else (json.dumps(body) if body is not None else None)
        if data is not None:
            sent.setdefault('Content-Type', 'application/json')
        self.conn.request(method, path, data, sent)
        answer = self.conn.getresponse()
        return Answer(answer.status, dict((k.lower(), v) for k, v in answer.getheaders()), answer.read())

    def post(self, path, body=None, **more):
        return self.call('POST', path, body if body is not None else {}, **more)

    def get(self, path, **more):
        return self.call('GET', path, **more)

    def acquire(self, resource, owner='ann', ttl_ms=60_000, **more):
        mine = more.pop('claim', None) or claim()
        headers = more.pop('headers', None)
        body = {'resource': resource, 'owner': owner, 'claim': mine, 'ttl_ms': ttl_ms, **more}
        answer = self.post('/v1/acquire', body, headers=headers)
        answer.claim = mine
        return answer

    def close(self):
        self.conn.close()


class Server:
    """`stint serve` on a store of its own."""

    def __init__(self, *options, store=None, env=None, port=0, directory=None):
        self.own = directory is None
        self.dir = directory or tempfile.mkdtemp(prefix='stint-server-', dir=os.environ.get('TMPDIR'))
        self.store = (store or 'sqlite:DIR/store.db').replace('DIR', self.dir)
        self.env = {**os.environ, 'XDG_STATE_HOME': f'{self.dir}/state', 'XDG_CONFIG_HOME': f'{self.dir}/config',
                    'STINT_STORE': self.store, **(env or {})}
        for name in ('STINT_KEY', 'STINT_KEY_FILE', 'http_proxy', 'https_proxy'):
            self.env.pop(name, None)
        self.options = list(options)
        self.process, self.port, self.clients, self.killed = None, port, [], False
        self.log = f'{self.dir}/serve.log'

    def start(self):
        words = [STINT, 'serve', '--listen', f'127.0.0.1:{self.port}', *self.options]
        if '--demo' in self.options:
            self.env.pop('STINT_STORE', None)
        begin = os.path.getsize(self.log) if os.path.exists(self.log) else 0
        self.killed = False
        with open(self.log, 'ab') as log:
            self.process = subprocess.Popen(words, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        def listening():
            if self.process.poll() is not None:
                raise AssertionError(f'the server ended: {self.text()}')
            found = re.search(r'listening on https?://[^ ]*:(\d+)', self.text()[begin:])
            return int(found.group(1)) if found else None
        self.port = until(listening, 'the server listens')
        return self

    def text(self):
        with open(self.log, errors='replace') as log:
            return log.read()

    def client(self, key=None, timeout=PATIENCE):
        self.clients.append(Client(self.port, key, timeout))
        return self.clients[-1]

    def stint(self, *words, key=None, store=None, check=True, timeout=PATIENCE):
        env = dict(self.env)
        if store:
            env['STINT_STORE'] = store
        if key:
            env['STINT_KEY'] = key
        done = subprocess.run([STINT, *words], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=timeout)
        if check and done.returncode != 0:
            raise AssertionError(f'{words}: {done.returncode} {done.stderr}')
        return done

    def key(self, name, allow, *more):
        return self.stint('key', 'create', name, '--allow', allow, *more, '-q').stdout.strip()

    @property
    def url(self):
        return f'http://127.0.0.1:{self.port}'

    def kill(self):
        self.killed = True
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
        return self.process.returncode

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        for one in self.clients:
            one.close()
        try:
            if self.process and not self.killed:
                ended = self.stop()
                # 1: what was under way at its end was cut; a test may leave such requests behind.
                if ended not in (0, 1):
                    raise AssertionError(f'the server ended by {ended}: {self.text()}')
            # It goes on after what the thread sanitizer finds, and a killed one cannot say it by its end.
            if self.process and re.search(r'Sanitizer|runtime error:', self.text()):
                raise AssertionError(f'a sanitizer found something: {self.text()}')
        finally:
            if self.own:
                shutil.rmtree(self.dir, ignore_errors=True)


class LosesOneAnswer:
    """Stands before a server. The first request for `path` is carried out, `meanwhile` is called, and the answer is
    lost with its connection, or `instead` (a status) stands in for it; everything else passes. `more`: headers that
    it adds, made of path and body."""

    def __init__(self, port, path, meanwhile, instead=None, more=lambda path, body: {}):
        self.lost = False
        outer, client_of = self, lambda: http.client.HTTPConnection('127.0.0.1', port, timeout=PATIENCE)

        class Relay(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def relay(self):
                body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
                conn = client_of()
                headers = {name: value for name, value in self.headers.items() if name.lower() != 'host'}
                headers.update(more(self.path, body))
                conn.request(self.command, self.path, body, headers)
                answer = conn.getresponse()
                content = answer.read()
                conn.close()
                self.close_connection = True
                if self.path == path and not outer.lost:
                    outer.lost = True
                    meanwhile()
                    if instead is None:
                        return
                    answer.status, content = instead, b'<html>not one of ours</html>'
                self.send_response(answer.status)
                self.send_header('Content-Type', answer.headers.get('Content-Type', 'application/json'))
                self.send_header('Content-Length', str(len(content)))
                self.send_header('Connection', 'close')
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = relay

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Relay)
        self.url = f'http://127.0.0.1:{self.server.server_port}'

    def __enter__(self):
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class RedisRelay:
    """Stands before a Redis. `dropped` (the digest of a script): it is not passed on, and its connection is closed: whoever sent
    it does not know. `about`: only those whose words have this. `down`: nobody gets through. `scripts`: which were asked for."""

    def __init__(self, port):
        self.port, self.dropped, self.down, self.pairs, self.scripts = port, None, False, [], []
        self.about = b''
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.url = f'redis://127.0.0.1:{self.listener.getsockname()[1]}/0'

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()
        self.cut()

    def cut(self):
        for pair in self.pairs:
            for sock in pair:
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        self.pairs = []

    def accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            if self.down:
                client.close()
                continue
            pair = (client, socket.create_connection(('127.0.0.1', self.port)))
            self.pairs.append(pair)
            for one, other, asks in ((*pair, True), (*reversed(pair), False)):
                threading.Thread(target=self.pass_on, args=(one, other, asks), daemon=True).start()

    def pass_on(self, one, other, asks):
        try:
            while data := one.recv(1 << 20):
                scripts = re.findall(rb'EVALSHA\r\n\$40\r\n([0-9a-f]{40})', data) if asks else []
                self.scripts += [(one, data) for one in scripts]
                if self.dropped in scripts and self.about in data:
                    break
                other.sendall(data)
        except OSError:
            pass
        for sock in (one, other):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def certificate(directory, name):
    """NAME.pem and NAME.key, of 127.0.0.1."""
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2',
                    '-keyout', f'{directory}/{name}.key', '-out', f'{directory}/{name}.pem', '-subj', f'/CN={name}',
                    '-addext', 'subjectAltName=IP:127.0.0.1'], check=True, capture_output=True)


def raw(port, data, end=True, patience=PATIENCE):
    """Sends bytes as they are; all that comes back until the other side closes."""
    with socket.create_connection(('127.0.0.1', port), timeout=patience) as sock:
        try:
            sock.sendall(data)
            if end:
                sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        got = b''
        while True:
            try:
                piece = sock.recv(65536)
            except OSError:
                return got
            if not piece:
                return got
            got += piece


def in_threads(count_, work):
    """work(i) in threads of their own; the first failure is raised."""
    wrong = []

    def one(i):
        try:
            work(i)
        except BaseException as error:  # noqa: told to who waits
            wrong.append(error)
    threads = [threading.Thread(target=one, args=(i,)) for i in range(count_)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise wrong[0]


main = unittest.main
TestCase = unittest.TestCase
