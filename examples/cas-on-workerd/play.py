#!/usr/bin/env python3
"""play.py STINT: two agents and one page, with a lease made of `cas` and with Stint, both on workerd.

Plays two accidents against each: an agent that is held up between its check and its write, and an agent whose
clock is ahead. Prints who wrote what. Exit code 0: the accidents hit the first and not the second."""
import glob
import http.client
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
WORKER = HERE.parent.parent / 'packaging' / 'worker'
STINT = str(pathlib.Path(sys.argv[1]).resolve())
TTL = 1.0
said = []


def say(design, what):
    said.append((design, what))
    print(f'{design:6} {what}')


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def wait_for(port):
    for _ in range(600):
        try:
            return socket.create_connection(('127.0.0.1', port)).close()
        except OSError:
            time.sleep(0.05)
    sys.exit('workerd does not start')


class CasLease:
    """The article's client: {holder, until} by the agent's own clock."""

    def __init__(self, port, name, clock_ahead=0.0):
        self.port, self.name, self.ahead = port, name, clock_ahead

    def ask(self, **what):
        connection = http.client.HTTPConnection('127.0.0.1', self.port)
        connection.request('POST', '/', json.dumps({'key': 'page', **what}))
        return json.loads(connection.getresponse().read())

    def acquire(self):
        old = self.ask()['value']
        now = time.time() + self.ahead
        if old and json.loads(old)['until'] > now:
            return False
        return self.ask(expected=old, next=json.dumps({'holder': self.name, 'until': now + TTL}))['done']

    def mine(self):
        lease = json.loads(self.ask()['value'])
        return lease['holder'] == self.name and lease['until'] > time.time() + self.ahead


def with_cas(folder, port):
    page = folder / 'cas-page'
    a, b = CasLease(port, 'a'), CasLease(port, 'b')
    assert a.acquire() and a.mine()
    say('cas', 'a has the lease, looks once more that it is its own, and is held up before it writes')
    while not b.acquire():
        time.sleep(0.1)
    page.write_text('by b\n')
    say('cas', 'b takes the lease when it has run out, and writes')
    page.write_text('by a\n')
    say('cas', f'a goes on and writes; the page is {page.read_text().strip()!r}: b\'s work is lost')
    late = page.read_text() == 'by a\n'
    while not b.acquire():
        time.sleep(0.1)
    ahead = CasLease(port, 'c', clock_ahead=3600).acquire()
    say('cas', f'b has the lease anew; c, an hour ahead, {"takes it too" if ahead else "is refused"}')
    return late and ahead


def with_stint(folder, port):
    page = folder / 'page'
    page.write_text('before\n')
    env = {**os.environ, 'STINT_STORE': f'do+http://127.0.0.1:{port}', 'STINT_KEY': 'for-the-play',
           'XDG_STATE_HOME': str(folder / 'state'), 'HOME': str(folder)}

    def stint(*words, body=None, before=()):
        return subprocess.run([*before, STINT, *words], env=env, input=body, text=True, capture_output=True)

    def write(token, body):
        return stint('write', str(page), '--resource', 'page', '--token', token, body=body)

    a = stint('acquire', 'page', '--ttl', f'{TTL:.0f}s', '--owner', 'a').stdout.strip()
    assert stint('check', 'page', '--token', a).returncode == 0
    say('stint', f'a has the lease with token {a}, looks once more, and is held up before it writes')
    b = stint('acquire', 'page', '--ttl', '60s', '--owner', 'b', '--wait', '20s').stdout.strip()
    assert write(b, 'by b\n').returncode == 0
    say('stint', f'b takes the lease with token {b} when it has run out, and writes')
    refused = write(a, 'by a\n')
    say('stint', f'a goes on and writes: exit code {refused.returncode}; the page is {page.read_text().strip()!r}')
    ahead = ['faketime', '--exclude-monotonic', '-f', '+1h'] if shutil.which('faketime') else []
    c = stint('acquire', 'page', '--ttl', '60s', '--owner', 'c', before=ahead)
    say('stint', f'c, an hour ahead{"" if ahead else " (no faketime here: by the right clock)"}: exit code {c.returncode}')
    return refused.returncode == 13 and page.read_text() == 'by b\n' and c.returncode == 11


def main():
    subprocess.run([WORKER / 'dev.sh', '--install'], check=True)
    workerd = glob.glob(str(WORKER / 'node_modules/@cloudflare/workerd-*/bin/workerd'))[0]
    esbuild = glob.glob(str(WORKER / 'node_modules/@esbuild/*/bin/esbuild'))[0]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([esbuild, HERE / 'cas.ts', '--format=esm', f'--outfile={folder}/cas.js', '--log-level=warning'],
                       check=True)
        shutil.copy(HERE / 'cas.capnp', folder)
        cas, store = free_port(), free_port()
        servers = [
            subprocess.Popen([workerd, 'serve', folder / 'cas.capnp', f'--socket-addr=http=127.0.0.1:{cas}']),
            subprocess.Popen([WORKER / 'dev.sh', str(store), folder / 'do'], stdout=subprocess.DEVNULL,
                             env={**os.environ, 'STINT_KEY': 'for-the-play'})]
        try:
            wait_for(cas)
            wait_for(store)
            hit, held = with_cas(folder, cas), with_stint(folder, store)
        finally:
            for server in servers:
                server.kill()
                server.wait()
    print(f'cas: {"both accidents happened" if hit else "NO accident"}; stint: {"none" if held else "AN accident"}')
    return 0 if hit and held else 1


if __name__ == '__main__':
    sys.exit(main())
