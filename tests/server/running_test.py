"""A server as its operator has it: its end, its log, its certificate, its unit, and another beside it on the same store."""
import json
import os
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import tempfile
import threading
import unittest

from harness import Server, TestCase, certificate, claim, main, raw, until
from lanes_test import Wire

HERE = os.path.dirname(os.path.abspath(__file__))


class Ending(TestCase):
    def locked(self, server):
        lock = sqlite3.connect(f'{server.dir}/store.db', isolation_level=None)
        self.addCleanup(lock.close)
        lock.execute('BEGIN IMMEDIATE')
        return lock

    def test_what_is_under_way_is_answered_and_nothing_new_is_taken(self):
        """On the loop and in a lane: the store is locked when the server is told to end."""
        with Server('--drain', '60s', store='sqlite:DIR/store.db?timeout=60s') as server:
            plain, lane = server.client(), Wire(server.port).into_lane('lane/a')
            self.addCleanup(lane.sock.close)
            self.assertEqual(plain.post('/v1/queues/configure', {'queue': 'q', 'limits': {}}).status, 200)
            lock = self.locked(server)
            plain.conn.request('POST', '/v1/queues/put', json.dumps({'queue': 'q', 'payload': 'p'}))
            bid = {'resource': 'lane/a', 'owner': 'o', 'claim': claim(), 'ttl_ms': 600_000}
            lane.sock.sendall(lane.text('/v1/acquire', bid))
            for sock in (plain.conn.sock, lane.sock):
                until(lambda: is_read(server, sock), 'the server has read it')
            server.process.send_signal(signal.SIGTERM)

            def refused():
                try:
                    socket.create_connection(('127.0.0.1', server.port)).close()
                    return False
                except ConnectionRefusedError:
                    return True
            until(refused, 'nothing new is taken')
            self.assertIsNone(server.process.poll())
            lock.execute('ROLLBACK')
            answer = plain.conn.getresponse()
            self.assertEqual(answer.status, 200)
            item = json.loads(answer.read())['id']
            status, got, _ = lane.answer()
            self.assertEqual(status, 200, got)
            server.process.wait(60)
            self.assertEqual(server.process.returncode, 0, server.text())
            # What was told stands.
            server.start()
            c = server.client()
            self.assertEqual(c.get(f'/v1/queues/item?id={item}').status, 200)
            self.assertEqual(c.post('/v1/check', {'resource': 'lane/a', 'token': got['token'], 'claim': bid['claim']}).status, 200)


def is_read(server, sock):
    """Whether nothing of what it sent waits unread at the server."""
    mine = sock.getsockname()[1]
    with open('/proc/net/tcp') as table:
        for line in table.readlines()[1:]:
            _, local, remote, _, queues = line.split()[:5]
            if int(local.split(':')[1], 16) == server.port and int(remote.split(':')[1], 16) == mine:
                return int(queues.split(':')[1], 16) == 0
    raise AssertionError('the connection is gone')


class Heads(TestCase):
    def test_the_head_of_a_stream_is_all_that_is_sent_of_it(self):
        with Server() as server:
            for path in ('/v1/watch?resource=r', '/v1/events', '/v1/leases'):
                head = f'HEAD {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nConnection: close\r\n\r\n'
                got = raw(server.port, head.encode(), end=False)
                self.assertRegex(got, rb'^HTTP/1.1 200 ')
                self.assertTrue(got.endswith(b'\r\n\r\n') and got.count(b'\r\n\r\n') == 1, got)
            c = server.client()
            until(lambda: b'\nstint_event_streams 0\n' in c.get('/metrics').body, 'none is open', patience=10)


class Log(TestCase):
    def test_an_answer_and_its_line_have_one_request_id(self):
        for store in ('sqlite:DIR/store.db', 'log:DIR/log'):
            with Server('--log', 'json+all', store=store) as server:
                c, ids = server.client(), []
                for path in ('/healthz', '/v1/leases', '/nothing', '/v1/leases?x=1'):
                    ids.append(c.get(path).headers['x-request-id'])
                wire = Wire(server.port).into_lane('lane/a')
                self.addCleanup(wire.sock.close)
                for _ in range(3):
                    ids.append(wire.ask('/v1/acquire', {'resource': 'lane/b', 'owner': 'o', 'ttl_ms': 60_000})[2]['x-request-id'])
                self.assertEqual(len(ids), len(set(ids)))

                def logged():
                    lines = [json.loads(line) for line in server.text().splitlines()]
                    return {line.get('request'): line for line in lines}
                until(lambda: set(ids) <= set(logged()), 'all are in the log')
                self.assertEqual([logged()[one]['status'] for one in ids], [200, 200, 404, 400, 200, 409, 409])


class Certificate(TestCase):
    def test_it_is_read_when_its_files_change_and_kept_while_they_do_not_fit(self):
        server = Server()
        for name in ('tls', 'other'):
            certificate(server.dir, name)
        server.options = ['--tls-cert', f'{server.dir}/tls.pem', '--tls-key', f'{server.dir}/tls.key']

        def subject():
            # Only the name in it is looked at; who trusts it is not asked here.
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            with socket.create_connection(('127.0.0.1', server.port), timeout=60) as sock, context.wrap_socket(sock) as tls:
                return b'other' if b'other' in tls.getpeercert(True) else b'tls'
        with server:
            self.assertEqual(subject(), b'tls')
            with open(f'{server.dir}/tls.pem', 'rb') as file:
                first = file.read()
            # Half of a new pair.
            os.replace(f'{server.dir}/other.pem', f'{server.dir}/tls.pem')
            server.process.send_signal(signal.SIGHUP)
            until(lambda: 'the certificate is kept as it was' in server.text(), 'the pair does not fit')
            self.assertEqual(subject(), b'tls')
            self.assertTrue(first)
            # The other half, and nobody says so.
            os.replace(f'{server.dir}/other.key', f'{server.dir}/tls.key')
            until(lambda: subject() == b'other', 'the new pair is in force')


@unittest.skipUnless(shutil.which('systemd-analyze'), 'needs systemd')
class Unit(TestCase):
    def test_the_service_manager_takes_the_unit(self):
        with open(f'{HERE}/../../packaging/systemd/stint.service.in') as file:
            text = file.read()
        self.assertIn('Type=notify', text)
        for hardened in ('NoNewPrivileges=', 'ProtectSystem=', 'PrivateTmp='):
            self.assertIn(hardened, text)
        with tempfile.TemporaryDirectory(prefix='stint-unit-') as here:
            with open(f'{here}/stint.service', 'w') as file:
                for line in text.splitlines():
                    # Any program that is there: what it would start is not looked at.
                    file.write(('ExecStart=/bin/true' if line.startswith('ExecStart=') else line) + '\n')
            done = subprocess.run(['systemd-analyze', 'verify', '--man=no', f'{here}/stint.service'], capture_output=True, text=True)
        said = [line for line in (done.stdout + done.stderr).splitlines() if 'stint.service' in line]
        self.assertEqual((done.returncode, said), (0, []), done.stderr)


class Beside(TestCase):
    def test_who_waits_is_not_passed_over_for_ever_by_who_asks_elsewhere(self):
        """Clients of another server take and give back the same lease without a pause."""
        with Server() as one:
            with Server(store=one.store) as two:
                over, turns = threading.Event(), []

                def hammer(i):
                    wire = Wire(two.port)
                    while not over.is_set():
                        status, _, grip = wire.acquire('busy')
                        if status == 200:
                            turns.append(i)
                            wire.ask('/v1/release', grip)
                    wire.sock.close()
                threads = [threading.Thread(target=hammer, args=(i,)) for i in range(4)]
                for thread in threads:
                    thread.start()
                try:
                    until(lambda: len(turns) > 20, 'the others get on')
                    for turn in range(5):
                        before = len(turns)
                        got = one.client().acquire('busy', owner=f'waits{turn}', wait_ms=50_000)
                        self.assertEqual(got.status, 200, got)
                        self.assertEqual(one.client().post('/v1/release', {'resource': 'busy', 'token': got.json['token'],
                                                                           'claim': got.claim}).status, 200)
                        print(f'a waiter was passed by {len(turns) - before} others')
                finally:
                    over.set()
                    for thread in threads:
                        thread.join()


if __name__ == '__main__':
    main()
