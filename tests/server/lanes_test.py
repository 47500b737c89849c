"""Connections that ask for short things again and again go to a lane, where requests are served in turns; whatever is not
plain goes back to the loop with all that was read. A client sees no difference."""
import glob
import http.client
import json
import shutil
import socket
import sqlite3
import subprocess
import time
import unittest
import unittest.mock

import crash_test
from harness import PATIENCE, Server, TestCase, claim, in_threads, main, until


def switches(pid):
    """How often the lane's thread has slept: it sleeps before every turn, and twice a second besides."""
    for status in glob.glob(f'/proc/{pid}/task/*/status'):
        with open(status) as text:
            lines = dict(line.split(':', 1) for line in text if ':' in line)
        if lines['Name'].strip() == 'stint-lane':
            return int(lines['voluntary_ctxt_switches'])
    raise AssertionError('there is no lane')


class Wire:
    """A connection that sends each request in one piece."""

    def __init__(self, port, key=None):
        self.sock = socket.create_connection(('127.0.0.1', port), timeout=PATIENCE)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.key, self.got = key, b''

    def text(self, path, body, method='POST', fields=()):
        data = json.dumps(body) if body is not None else ''
        head = [f'{method} {path} HTTP/1.1', 'Host: localhost', *fields]
        if self.key:
            head.append(f'Authorization: Bearer {self.key}')
        if data:
            head.append(f'Content-Length: {len(data)}')
        return '\r\n'.join([*head, '', data]).encode()

    def answer(self):
        while b'\r\n\r\n' not in self.got:
            self.more()
        head, self.got = self.got.split(b'\r\n\r\n', 1)
        lines = head.decode().split('\r\n')
        fields = dict(line.lower().split(': ', 1) for line in lines[1:])
        while len(self.got) < int(fields['content-length']):
            self.more()
        body = self.got[:int(fields['content-length'])]
        self.got = self.got[len(body):]
        return int(lines[0].split()[1]), json.loads(body), fields

    def more(self):
        piece = self.sock.recv(65536)
        if not piece:
            raise AssertionError(f'closed, after {self.got!r}')
        self.got += piece

    def ask(self, path, body, **more):
        self.sock.sendall(self.text(path, body, **more))
        return self.answer()

    def acquire(self, name, **more):
        mine = claim()
        status, body, _ = self.ask('/v1/acquire', {'resource': name, 'owner': 'ann', 'claim': mine, 'ttl_ms': 60_000, **more})
        return status, body, {'resource': name, 'claim': mine, 'token': body.get('token')}

    def pair(self, name):
        status, _, grip = self.acquire(name)
        if status != 200:
            raise AssertionError(f'{name}: {status}')
        status, _, _ = self.ask('/v1/release', grip)
        if status != 200:
            raise AssertionError(f'{name}: release {status}')
        return grip['token']

    def into_lane(self, name):
        for _ in range(2):
            self.pair(name)
        return self

    def ended(self):
        try:
            return self.sock.recv(1) == b''
        except ConnectionResetError:
            return True


class Lanes:
    """On each store that has batches."""
    store = None

    @classmethod
    def setUpClass(cls):
        cls.server = Server('--rate', '100000', store=cls.store)
        cls.key = cls.server.key('bench', 'acquire,read')
        cls.leaver = cls.server.key('leaver', 'acquire')
        cls.admin = cls.server.key('root', 'admin')
        cls.other = cls.server.key('other', 'acquire,read', '--prefix', 'other/')
        cls.server.start()
        cls.addClassCleanup(cls.server.__exit__)

    def wire(self, name, key=None):
        wire = Wire(self.server.port, key or self.key)
        self.addCleanup(wire.sock.close)
        return wire.into_lane(name)

    def served_by_lane(self, work):
        before = switches(self.server.process.pid)
        work()
        return switches(self.server.process.pid) - before

    def test_short_requests_are_served_by_a_lane(self):
        wire, asked = self.wire('lane/a'), 200
        self.assertGreaterEqual(self.served_by_lane(lambda: [wire.pair('lane/a') for _ in range(asked)]), asked)

    # EVIDENCE-OF: G1
    def test_tokens_grow_over_lane_and_loop(self):
        wire, tokens = self.wire('lane/b'), []
        for i in range(60):
            tokens.append(wire.pair('lane/b'))
            if i % 7 == 0:  # to the loop, and back after some
                self.assertEqual(wire.ask('/v1/leases', None, method='GET')[0], 200)
        self.assertEqual(tokens, sorted(set(tokens)))

    # EVIDENCE-OF: G2
    def test_one_of_many_is_granted(self):
        wires = [self.wire(f'lane/c{i}') for i in range(16)]
        for _ in range(20):
            got = [None] * len(wires)

            def ask(i):
                got[i] = wires[i].acquire('lane/c')
            in_threads(len(wires), ask)
            self.assertEqual(sorted(status for status, _, _ in got), [200] + [409] * 15)
            winner = next(i for i in range(16) if got[i][0] == 200)
            self.assertEqual(wires[winner].ask('/v1/release', got[winner][2])[0], 200)

    def test_what_is_not_plain_is_served_all_the_same(self):
        bid = {'resource': 'lane/d', 'owner': 'ann', 'claim': claim(), 'ttl_ms': 60_000}
        wire = self.wire('lane/d')
        # In two pieces, in many, two at once, with a body in chunks, over 8 KiB.
        text = wire.text('/v1/acquire', bid)
        wire.sock.sendall(text[:30])
        wire.sock.sendall(text[30:])
        status, body, _ = wire.answer()
        self.assertEqual(status, 200, body)
        renew = {'resource': 'lane/d', 'claim': bid['claim'], 'token': body['token'], 'ttl_ms': 60_000}
        wire = self.wire('lane/d2')
        for i in range(0, len(text := wire.text('/v1/renew', renew)), 40):
            wire.sock.sendall(text[i:i + 40])
        self.assertEqual(wire.answer()[0], 200)
        wire = self.wire('lane/d2')
        wire.sock.sendall(wire.text('/v1/renew', renew) + wire.text('/v1/renew', {**renew, 'token': renew['token'] + 1}))
        self.assertEqual([wire.answer()[0], wire.answer()[0]], [200, 410])
        wire = self.wire('lane/d2')
        data = json.dumps(renew).encode()
        wire.sock.sendall(wire.text('/v1/renew', None, fields=['Transfer-Encoding: chunked'])
                          + b'%x\r\n%s\r\n0\r\n\r\n' % (len(data), data))
        self.assertEqual(wire.answer()[0], 200)
        wire = self.wire('lane/d2')
        self.assertEqual(wire.ask('/v1/renew', renew, fields=[f'X-{i}: {"x" * 500}' for i in range(20)])[0], 200)
        # Who would wait to be asked for the body, and sends it all the same; and who waits.
        wire = self.wire('lane/d2')
        self.assertEqual(wire.ask('/v1/renew', renew, fields=['Expect: 100-continue'])[0], 200)
        head, body = wire.text('/v1/renew', renew, fields=['Expect: 100-continue']).split(b'\r\n\r\n')
        wire.sock.sendall(head + b'\r\n\r\n')
        while not wire.got.endswith(b'\r\n\r\n'):
            wire.more()
        self.assertEqual(wire.got, b'HTTP/1.1 100 Continue\r\n\r\n')
        wire.got = b''
        wire.sock.sendall(body)
        self.assertEqual(wire.answer()[0], 200)
        wire = self.wire('lane/d2')
        status, _, fields = wire.ask('/v1/renew', renew, fields=['Connection: close'])
        self.assertEqual((status, fields['connection']), (200, 'close'))
        self.assertTrue(wire.ended())

    def test_what_is_refused_is_refused_as_ever(self):
        def asked(path, body, key=None, **more):
            wire = self.wire('lane/e' if key is None else 'other/e', key)
            return wire.ask(path, body, **more)
        bid = {'resource': 'lane/e', 'owner': 'ann', 'claim': claim(), 'ttl_ms': 60_000}
        self.assertEqual(asked('/v1/acquire', {**bid, 'ttl_ms': 'x'})[0], 400)
        self.assertEqual(asked('/v1/acquire', {**bid, 'more': 1})[0], 400)
        self.assertEqual(asked('/v1/acquire', bid, key=self.other)[0], 403)
        self.assertEqual(asked('/v1/acquire?x=1', bid)[0], 400)
        self.assertEqual(asked('/v1/nothing', bid)[0], 404)
        self.assertEqual(asked('/v1/release', {'resource': 'lane/e', 'claim': claim(), 'token': 1})[0], 410)
        wire = self.wire('lane/e')
        wire.key = self.key[:-1] + ('a' if self.key[-1] != 'a' else 'b')
        self.assertEqual(wire.ask('/v1/acquire', bid)[0], 401)
        wire = self.wire('lane/e')
        wire.sock.sendall(b'POST /v1/acquire HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 2\r\n\r\n{}')
        self.assertEqual(wire.answer()[0], 400)
        self.assertTrue(wire.ended())

    def test_a_revoked_key_is_shut_out_of_a_lane(self):
        wire = self.wire('lane/f', self.leaver)
        self.server.stint('key', 'revoke', 'leaver', store=self.server.url, key=self.admin)
        until(lambda: wire.acquire('lane/f')[0] == 401, 'the revoked key is refused')

    def test_a_wait_that_begins_in_a_lane_is_served_in_order(self):
        holder, waiter = self.wire('lane/g1'), self.wire('lane/g2')
        status, _, grip = holder.acquire('lane/g')
        self.assertEqual(status, 200)
        waiter.sock.sendall(waiter.text('/v1/acquire', {'resource': 'lane/g', 'owner': 'bob', 'claim': claim(),
                                                        'ttl_ms': 60_000, 'wait_ms': 30_000}))
        until(lambda: holder.ask('/v1/waiters', None, method='GET')[1]['waiters'], 'it waits')
        self.assertEqual(holder.ask('/v1/release', grip)[0], 200)
        self.assertEqual(waiter.answer()[0], 200)

    def test_an_idempotency_key_is_kept_in_a_lane(self):
        wire, mine = self.wire('lane/h'), claim()
        bid = {'resource': 'lane/h', 'owner': 'ann', 'claim': mine, 'ttl_ms': 60_000}
        field = [f'Idempotency-Key: {claim()}']
        status, first, _ = wire.ask('/v1/acquire', bid, fields=field)
        again, second, _ = wire.ask('/v1/acquire', bid, fields=field)
        self.assertEqual((status, again, first['token']), (200, 200, second['token']))
        self.assertTrue(second['replayed'])
        self.assertEqual(wire.ask('/v1/acquire', {**bid, 'ttl_ms': 50_000}, fields=field)[0], 422)

    # EVIDENCE-OF: G1 G2
    def test_one_key_at_once_in_a_lane_is_one_grant(self):
        wires = [self.wire(f'lane/l{i}') for i in range(16)]
        for turn in range(10):
            bid = {'resource': f'lane/once{turn}', 'owner': 'ann', 'claim': claim(), 'ttl_ms': 60_000}
            key, got = f'Idempotency-Key: once{turn}', [None] * len(wires)

            def ask(i):
                got[i] = wires[i].ask('/v1/acquire', bid, fields=[key])
            in_threads(len(wires), ask)
            self.assertEqual({status for status, _, _ in got}, {200}, got)
            self.assertEqual({body['token'] for _, body, _ in got}, {1})
            self.assertEqual(sum(not body['replayed'] for _, body, _ in got), 1)
            # Of one key and two bodies one is taken, whichever it is.
            key = f'Idempotency-Key: two{turn}'

            def differ(i):
                got[i] = wires[i].ask('/v1/acquire', {**bid, 'resource': f'lane/two{turn}-{i % 2}'}, fields=[key])
            in_threads(len(wires), differ)
            self.assertEqual(sorted(status for status, _, _ in got), [200] * 8 + [422] * 8)
            self.assertEqual(len({body['resource'] for status, body, _ in got if status == 200}), 1)

    def test_who_leaves_is_forgotten(self):
        wires = [self.wire(f'lane/i{i}') for i in range(20)]

        looker = self.server.client(self.key)

        def connections():
            text = looker.get('/metrics').body.decode()
            return int(next(line for line in text.splitlines() if line.startswith('stint_connections ')).split()[1])
        before = connections()
        self.assertGreaterEqual(before, 20)
        for wire in wires[1:]:
            wire.sock.close()
        until(lambda: connections() <= before - 19, 'fewer connections')

    def test_who_does_not_read_its_answers_holds_up_nobody(self):
        greedy = self.wire('lane/j')
        greedy.sock.setblocking(False)
        text, sent = greedy.text('/v1/release', {'resource': 'lane/j', 'claim': claim(), 'token': 1}), 0
        refused = 0
        while refused < 3:  # until the server reads no more of it
            try:
                sent += greedy.sock.send(text)
                refused = 0
            except BlockingIOError:
                refused += 1
                self.wire('lane/k').pair('lane/k')
        self.assertGreater(sent, len(text))


@unittest.skipUnless(shutil.which('strace'), 'needs strace')
class Order(TestCase):
    # EVIDENCE-OF: G11
    def test_a_grant_is_synced_before_its_answer_and_a_release_waits_for_no_sync(self):
        with Server(store='log:DIR/store') as server:
            wire = Wire(server.port).into_lane('lane/a')
            self.addCleanup(wire.sock.close)
            trace = f'{server.dir}/trace'
            tracer = subprocess.Popen(['strace', '-f', '-s', '400', '-o', trace, '-e', 'trace=pwrite64,fdatasync,sendto',
                                       '-p', str(server.process.pid)], stderr=subprocess.PIPE, text=True)
            self.addCleanup(tracer.stderr.close)
            self.assertIn('attached', tracer.stderr.readline())
            for _ in range(50):
                wire.pair('lane/a')
            tracer.terminate()
            tracer.wait()
            with open(trace) as text:
                calls = [line for line in text
                         if ('lane/a' in line or 'fdatasync' in line) and 'stint-anchor' not in line]
        self.assertGreaterEqual(sum('sendto' in line for line in calls), 100)
        for i, line in enumerate(calls):
            if 'sendto' not in line:
                continue
            before = next((one for one in reversed(calls[:i]) if 'resumed' not in one), '')
            if '\\"held\\":true' in line:
                self.assertIn('fdatasync', before, f'{before} then {line}')
            else:
                self.assertIn('pwrite64', before, f'{before} then {line}')


@unittest.skipUnless(shutil.which('strace'), 'needs strace')
class SlowDisk(TestCase):
    """Every thread's first sync takes six seconds. A refusal never waits for one: not in a lane, not on the loop."""
    STORES = ('sqlite:DIR/store.db', 'log:DIR/store')

    def slow(self, server):
        trace = f'{server.dir}/trace'
        tracer = subprocess.Popen(['strace', '-f', '-o', trace, '-e', 'trace=fsync,fdatasync', '-e',
                                   'inject=fsync,fdatasync:delay_enter=6000000:when=1', '-p', str(server.process.pid)],
                                  stderr=subprocess.PIPE, text=True)
        self.addCleanup(tracer.stderr.close)
        self.addCleanup(tracer.wait)
        self.addCleanup(tracer.terminate)
        self.assertIn('attached', tracer.stderr.readline())

        def syncing():
            with open(trace) as text:
                return 'sync(' in text.read()
        return tracer, syncing

    def refusals(self, wire):
        """What is to be refused, whatever it asks for: the path, the body, more fields, and the status."""
        kept = ['Idempotency-Key: kept']
        bid = {'resource': 'kept', 'owner': 'ann', 'ttl_ms': 60_000}
        self.assertEqual(wire.ask('/v1/acquire', {**bid, 'claim': claim()}, fields=kept)[0], 200)
        status, held, grip = wire.acquire('held')
        self.assertEqual(status, 200)
        status, short, ended = wire.acquire('ended', ttl_ms=300)
        self.assertEqual(status, 200)
        until(lambda: wire.ask('/v1/check', ended)[0] == 410, 'it has run out')
        return [('/v1/acquire', {**bid, 'resource': 'held', 'claim': claim()}, [], 409),
                ('/v1/renew', {**grip, 'claim': claim(), 'ttl_ms': 60_000, 'hint': held['hint']}, [], 410),
                ('/v1/renew', {**ended, 'ttl_ms': 60_000, 'hint': short['hint']}, [], 410),
                ('/v1/acquire', {**bid, 'resource': 'free', 'claim': claim(), 'ttl_ms': 1}, [], 400),
                ('/v1/acquire', {**bid, 'claim': claim(), 'note': 'another'}, kept, 422)]

    def refused_meanwhile(self, prepare):
        for store in self.STORES:
            with self.subTest(store), Server(store=store) as server:
                slow, loser, *others = [Wire(server.port) for _ in range(42)]
                for wire in (slow, loser, *others):
                    self.addCleanup(wire.sock.close)
                refusals = self.refusals(loser)
                for wire in (slow, loser):
                    prepare(wire)
                tracer, syncing = self.slow(server)
                slow.sock.sendall(slow.text('/v1/acquire', {'resource': 'slow', 'owner': 'ann', 'claim': claim(), 'ttl_ms': 60_000}))
                until(syncing, 'the sync has begun')
                # More than there are workers, and each of them waits, too.
                for i, wire in enumerate(others):
                    wire.sock.sendall(wire.text('/v1/acquire', {'resources': [f'list/{i}'], 'owner': 'ann', 'claim': claim(),
                                                                'ttl_ms': 60_000}))
                for path, body, fields, expected in refusals * 2:
                    status, told, _ = loser.ask(path, body, fields=fields)
                    self.assertEqual(status, expected, told)
                slow.sock.setblocking(False)
                with self.assertRaises(BlockingIOError):
                    slow.sock.recv(1)
                slow.sock.settimeout(PATIENCE)
                tracer.terminate()  # the disk is quick again
                self.assertEqual(slow.answer()[0], 200)

    def test_who_is_refused_in_a_lane_does_not_wait_for_it(self):
        self.refused_meanwhile(lambda wire: wire.into_lane('lane'))

    def test_who_is_refused_on_the_loop_does_not_wait_for_it(self):
        self.refused_meanwhile(lambda wire: None)

    def test_one_list_too_often_at_once_is_unknown_and_nobodys_refusal(self):
        """Four are worked on or wait; of the others nobody can say what becomes of the first one, which may be theirs."""
        with Server() as server:
            tracer, _ = self.slow(server)
            bid = {'resources': ['list/x', 'list/y'], 'owner': 'ann', 'claim': claim(), 'ttl_ms': 60_000}
            told = [None] * 6

            def ask(i):
                told[i] = server.client().post('/v1/acquire', bid)
            in_threads(6, ask)
            tracer.terminate()
            self.assertEqual(sorted(one.status for one in told), [200, 200, 200, 200, 504, 504])
            self.assertEqual({one.code for one in told if one.status == 504}, {'unknown_outcome'})
            self.assertEqual(len({json.dumps([lease['token'] for lease in one.json['leases']]) for one in told if one.status == 200}), 1)

    def test_who_is_refused_does_not_wait_for_another_process_that_writes(self):
        with Server(store='sqlite:DIR/store.db') as server:
            mine, loser = [Wire(server.port).into_lane('lane') for _ in range(2)]
            for wire in (mine, loser):
                self.addCleanup(wire.sock.close)
            status, _, grip = mine.acquire('mine')
            self.assertEqual((status, loser.acquire('held')[0]), (200, 200))
            other = sqlite3.connect(f'{server.dir}/store.db', isolation_level=None)
            self.addCleanup(other.close)
            for text in (mine.text('/v1/release', grip), mine.text('/v1/acquire', {'resource': 'mine', 'owner': 'ann', 'ttl_ms': 60_000})):
                other.execute('BEGIN IMMEDIATE')
                mine.sock.sendall(text)
                self.assertEqual(loser.acquire('held')[0], 409)
                mine.sock.setblocking(False)
                with self.assertRaises(BlockingIOError):
                    mine.sock.recv(1)
                mine.sock.settimeout(PATIENCE)
                other.execute('ROLLBACK')
                self.assertEqual(mine.answer()[0], 200)


class OnePiece(http.client.HTTPConnection):
    """Sends a head with its body: the standard library's own does not, and such clients go back to the loop."""

    def _send_output(self, message_body=None, encode_chunked=False):
        self._buffer.extend((b'', b''))
        text = b'\r\n'.join(self._buffer) + (message_body or b'')
        del self._buffer[:]
        self.send(text)


class Killed(TestCase):
    # EVIDENCE-OF: G1 G2 G11
    def test_killed_under_load_and_started_again(self):
        for store in ('sqlite:DIR/store.db', 'log:DIR/log?segment_kb=1024&snapshot_kb=256'):
            with self.subTest(store), unittest.mock.patch('http.client.HTTPConnection', OnePiece):
                crash_test.Crash.killed_under_load(self, store=store)


class LanesOnSqlite(Lanes, TestCase):
    store = 'sqlite:DIR/store.db'


class LanesOnLog(Lanes, TestCase):
    store = 'log:DIR/store'


class Limits(TestCase):
    def test_what_a_lane_declines_is_counted_once_against_the_rate(self):
        """One request a second: the second count of one request would be one too many."""
        with Server('--rate', '1', '--max-leases', '1') as server:
            key = server.key('slow', 'acquire')
            until(lambda: server.client().get('/v1/store').status == 401, 'the key is known')
            wire, last = Wire(server.port, key), time.monotonic()
            self.addCleanup(wire.sock.close)

            def paced(path, body):
                nonlocal last
                until(lambda: time.monotonic() > last + 1.1, 'the next one is within the rate')
                status, told, _ = wire.ask(path, body)
                last = time.monotonic()
                return status, told

            def bid(name):
                return {'resource': name, 'owner': 'ann', 'claim': claim(), 'ttl_ms': 600_000}
            first = bid('a')
            status, told = paced('/v1/acquire', first)
            self.assertEqual(status, 200, told)
            self.assertEqual(paced('/v1/release', {'resource': 'a', 'claim': first['claim'], 'token': told['token']})[0], 200)
            # In the lane by now.
            before = switches(server.process.pid)
            self.assertEqual(paced('/v1/acquire', bid('b'))[0], 200)
            self.assertGreater(switches(server.process.pid), before)
            status, told = paced('/v1/acquire', bid('c'))
            self.assertEqual(status, 429)
            self.assertIn('may hold 1 leases', told['error']['message'])

    def test_a_head_that_is_too_long_is_so_whatever_was_asked_before(self):
        with Server('--max-header', '2048', store='log:DIR/store') as server:
            for asked in range(3):
                wire = Wire(server.port)
                self.addCleanup(wire.sock.close)
                for _ in range(asked):
                    wire.into_lane('lane/a')
                status, _, fields = wire.ask('/v1/acquire', {'resource': 'lane/a', 'owner': 'o', 'ttl_ms': 60_000}, fields=['X: ' + 'x' * 4000])
                self.assertEqual((status, fields['connection']), (431, 'close'))


class Ending(TestCase):
    def test_a_server_with_lanes_stops_at_once_and_cleanly(self):
        with Server(store='log:DIR/store') as server:
            wires = [Wire(server.port).into_lane(f'lane/{i}') for i in range(8)]
            for wire in wires:
                self.addCleanup(wire.sock.close)
            self.assertEqual(server.stop(), 0)
            for wire in wires:
                self.assertTrue(wire.ended())

    def test_an_idle_connection_in_a_lane_ends(self):
        with Server('--idle-timeout', '1s', store='log:DIR/store') as server:
            wire = Wire(server.port).into_lane('lane/a')
            self.addCleanup(wire.sock.close)
            self.assertTrue(wire.ended())


if __name__ == '__main__':
    main()
