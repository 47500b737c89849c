"""Who waits: in order, at no cost, and never in vain for long. And many who only hold."""
import asyncio
import http.client
import json
import resource
import socket
import sqlite3
import ssl
import time

from harness import PATIENCE, Server, TestCase, certificate, claim, count, main, until

resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)


class Wire:
    """One connection, without a thread of its own."""

    @classmethod
    async def open(cls, port):
        self = cls()
        self.reader, self.writer = await asyncio.open_connection('127.0.0.1', port)
        return self

    def send(self, path, body):
        data = json.dumps(body).encode()
        self.writer.write(f'POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n\r\n'.encode() + data)

    async def answer(self):
        head = (await self.reader.readuntil(b'\r\n\r\n')).decode()
        length = int(next(line[15:] for line in head.split('\r\n') if line.lower().startswith('content-length:')))
        return int(head[9:12]), json.loads(await self.reader.readexactly(length))

    async def ask(self, path, body):
        self.send(path, body)
        return await self.answer()

    def close(self):
        self.writer.close()


def bid(name, owner, wait_ms=0, ttl_ms=60_000):
    return {'resource': name, 'owner': owner, 'claim': claim(), 'ttl_ms': ttl_ms, 'wait_ms': wait_ms}


def hold(sent, got, **more):
    return {'resource': sent['resource'], 'token': got['token'], 'claim': sent['claim'], **more}


def rss(pid):
    with open(f'/proc/{pid}/status') as file:
        return int(next(line.split()[1] for line in file if line.startswith('VmRSS'))) * 1024


class Waiting(TestCase):
    def play(self, coroutine, *options):
        with Server('--max-connections', '20000', '--max-waiters', '20000', *options) as server:
            self.server, self.watcher = server, server.client()
            asyncio.run(asyncio.wait_for(coroutine(server.port), PATIENCE * 4))

    async def waiters(self, number):
        """Until so many wait."""
        deadline = time.monotonic() + PATIENCE
        while f'\nstint_waiters {number}\n' not in self.watcher.get('/metrics').body.decode():
            self.assertLess(time.monotonic(), deadline, f'never {number} waiters')
            await asyncio.sleep(0.002)

    async def refused(self, resource, owner):
        """Until it was told once that another holds it: what it gets from then on was waited for."""
        deadline = time.monotonic() + PATIENCE
        while not any((one['kind'], one['resource'], one['owner']) == ('refused_held', resource, owner)
                      for one in self.watcher.get('/v1/events?limit=1000').json['events']):
            self.assertLess(time.monotonic(), deadline, f'{owner} was never refused')
            await asyncio.sleep(0.02)

    def test_waiters_are_served_in_order(self):
        number = count('STINT_WAITERS', 60)

        async def play(port):
            holder = await Wire.open(port)
            first = bid('line', 'holder')
            granted = (await holder.ask('/v1/acquire', first))[1]
            wires, bids = [], []
            for i in range(number):
                wires.append(await Wire.open(port))
                bids.append(bid('line', f'w{i}', wait_ms=600_000))
                wires[i].send('/v1/acquire', bids[i])
                await self.waiters(i + 1)
            order = []

            async def turn(i):
                status, got = await wires[i].answer()
                self.assertEqual(status, 200, got)
                self.assertTrue(got['provisional'])
                order.append((got['token'], i))
                self.assertEqual((await wires[i].ask('/v1/renew', hold(bids[i], got, ttl_ms=60_000)))[0], 200)
                self.assertEqual((await wires[i].ask('/v1/release', hold(bids[i], got)))[0], 200)
            begin = time.monotonic()
            turns = [asyncio.ensure_future(turn(i)) for i in range(number)]
            await holder.ask('/v1/release', hold(first, granted))
            await asyncio.gather(*turns)
            took = time.monotonic() - begin
            self.assertEqual([i for _, i in order], list(range(number)))
            tokens = [token for token, _ in order]
            self.assertEqual(tokens, list(range(tokens[0], tokens[0] + number)))
            print(f'{number} waiters in order, {took / number * 1000:.2f} ms a turn (renewed and released)')
        self.play(play)

    def test_what_is_free_is_granted_as_without_waiting(self):
        async def play(port):
            wire = await Wire.open(port)
            status, got = await wire.ask('/v1/acquire', bid('free', 'me', wait_ms=600_000))
            self.assertEqual((status, got['granted_ttl_ms']), (200, 60_000))
            self.assertFalse(got.get('provisional', False))
        self.play(play)

    def test_who_vanishes_while_waiting_costs_nothing(self):
        async def play(port):
            holder, gone, next_ = [await Wire.open(port) for _ in range(3)]
            first = bid('v', 'holder')
            granted = (await holder.ask('/v1/acquire', first))[1]
            gone.send('/v1/acquire', bid('v', 'gone', wait_ms=600_000))
            await self.waiters(1)
            waited = bid('v', 'next', wait_ms=600_000)
            next_.send('/v1/acquire', waited)
            await self.waiters(2)
            gone.close()
            await self.waiters(1)
            await holder.ask('/v1/release', hold(first, granted))
            status, got = await next_.answer()
            # Nobody was granted it in between.
            self.assertEqual((status, got['token']), (200, granted['token'] + 1))
        self.play(play)

    def test_a_grant_that_nobody_takes_up_is_over_in_five_seconds(self):
        async def play(port):
            holder, silent, next_ = [await Wire.open(port) for _ in range(3)]
            first = bid('p', 'holder')
            granted = (await holder.ask('/v1/acquire', first))[1]
            silent.send('/v1/acquire', bid('p', 'silent', wait_ms=600_000))
            await self.waiters(1)
            next_.send('/v1/acquire', bid('p', 'next', wait_ms=600_000))
            await self.waiters(2)
            await self.refused('p', 'silent')
            await holder.ask('/v1/release', hold(first, granted))
            status, got = await silent.answer()
            self.assertEqual((status, got['granted_ttl_ms'], got['provisional']), (200, 5000, True))
            begin = time.monotonic()
            status, got = await next_.answer()
            self.assertEqual((status, got['reason']), (200, 'expired'))
            print(f'a grant that nobody took up stood in the way for {time.monotonic() - begin:.2f} s')
            self.assertLess(time.monotonic() - begin, 30)
        self.play(play)

    def test_who_wants_several_has_its_place_too(self):
        async def play(port):
            holder, several, one = [await Wire.open(port) for _ in range(3)]
            first = bid('m/a', 'holder')
            granted = (await holder.ask('/v1/acquire', first))[1]
            both = bid('', 'several', wait_ms=600_000)
            del both['resource']
            both['resources'] = ['m/b', 'm/a', 'm/c']
            several.send('/v1/acquire', both)
            await self.waiters(1)
            await self.refused('m/a', 'several')
            single = bid('m/a', 'one', wait_ms=600_000)
            one.send('/v1/acquire', single)
            await self.waiters(2)
            await holder.ask('/v1/release', hold(first, granted))
            status, got = await several.answer()
            self.assertEqual((status, [lease['resource'] for lease in got['leases']]), (200, ['m/a', 'm/b', 'm/c']))
            self.assertEqual(got['leases'][0]['token'], granted['token'] + 1)
            await self.waiters(1)
            mine = {**both, 'resource': 'm/a'}
            self.assertEqual((await several.ask('/v1/release', hold(mine, got['leases'][0])))[0], 200)
            status, got = await one.answer()
            self.assertEqual((status, got['token']), (200, granted['token'] + 2))
        self.play(play)

    def test_who_wants_several_holds_up_nobody_who_wants_another_of_them(self):
        async def play(port):
            holder, several, one, later, behind = [await Wire.open(port) for _ in range(5)]
            first = bid('n/b', 'holder')
            granted = (await holder.ask('/v1/acquire', first))[1]
            both = bid('', 'several', wait_ms=600_000)
            del both['resource']
            both['resources'] = ['n/a', 'n/b']
            several.send('/v1/acquire', both)
            await self.waiters(1)
            await self.refused('n/b', 'several')
            single = bid('n/a', 'one', wait_ms=600_000)
            status, got = await one.ask('/v1/acquire', single)
            self.assertEqual(status, 200, got)
            later.send('/v1/acquire', bid('n/a', 'later', wait_ms=600_000))
            await self.waiters(2)
            next_ = bid('n/b', 'behind', wait_ms=600_000)
            behind.send('/v1/acquire', next_)
            await self.waiters(3)
            # Now the other one is in its way: who stood behind it has its turn, and it goes before who came later there.
            await holder.ask('/v1/release', hold(first, granted))
            status, turn = await behind.answer()
            self.assertEqual(status, 200, turn)
            self.assertEqual((await behind.ask('/v1/release', hold(next_, turn)))[0], 200)
            self.assertEqual((await one.ask('/v1/release', hold(single, got)))[0], 200)
            status, got = await several.answer()
            self.assertEqual((status, len(got['leases'])), (200, 2))
            await self.waiters(1)
        self.play(play)

    def test_who_vanishes_behind_bytes_that_nobody_read_is_noticed(self):
        async def play(port):
            holder, gone = [await Wire.open(port) for _ in range(2)]
            await holder.ask('/v1/acquire', bid('w', 'holder', ttl_ms=600_000))
            gone.send('/v1/acquire', bid('w', 'gone', wait_ms=600_000))
            await self.waiters(1)
            # The beginning of another request.
            gone.writer.write(b'GET /')
            await gone.writer.drain()
            gone.close()
            await self.waiters(0)
        self.play(play)

    def test_a_wait_ends_with_who_is_in_the_way(self):
        async def play(port):
            holder, one = [await Wire.open(port) for _ in range(2)]
            await holder.ask('/v1/acquire', bid('t', 'holder'))
            status, got = await one.ask('/v1/acquire', bid('t', 'one', wait_ms=50))
            self.assertEqual((status, got['error']['lease']['owner']), (409, 'holder'))
            status, got = await one.ask('/v1/acquire', {**bid('x', 'o', wait_ms=50), 'resources': ['t', 'u']} | {'resource': None})
            self.assertEqual((status, got['error']['code']), (409, 'held'))
        self.play(play)

    def test_a_wait_that_is_over_names_who_has_it_now(self):
        async def play(port):
            holder, first, second = [await Wire.open(port) for _ in range(3)]
            held = bid('n', 'holder')
            status, got = await holder.ask('/v1/acquire', held)
            first.send('/v1/acquire', bid('n', 'first', wait_ms=60_000))
            await self.waiters(1)
            second.send('/v1/acquire', bid('n', 'second', wait_ms=1_500))
            await self.waiters(2)
            await holder.ask('/v1/release', hold(held, got))
            self.assertEqual((await first.answer())[0], 200)
            status, got = await second.answer()
            self.assertEqual((status, got['error']['lease']['owner']), (409, 'first'))
        self.play(play)

    def test_an_expiry_wakes_the_next(self):
        async def play(port):
            holder, one = [await Wire.open(port) for _ in range(2)]
            await holder.ask('/v1/acquire', bid('e', 'holder', ttl_ms=300))
            status, got = await one.ask('/v1/acquire', bid('e', 'one', wait_ms=60_000))
            self.assertEqual((status, got['reason']), (200, 'expired'))
        self.play(play)

    def test_a_stop_tells_who_waits(self):
        async def play(port):
            holder, one = [await Wire.open(port) for _ in range(2)]
            await holder.ask('/v1/acquire', bid('s', 'holder'))
            one.send('/v1/acquire', bid('s', 'one', wait_ms=600_000))
            await self.waiters(1)
            self.watcher.close()
            holder.close()
            self.server.process.terminate()
            status, got = await one.answer()
            self.assertEqual((status, got['error']['code']), (503, 'unavailable'))
            one.close()
            self.server.process.wait(PATIENCE)
            self.assertEqual(self.server.process.returncode, 0, self.server.text())
        self.play(play)

    def test_many_hold_and_renew(self):
        number = count('STINT_CLIENTS', 200)

        async def play(port):
            before = rss(self.server.process.pid)
            wires = []
            for _ in range(number):
                wires.append(await Wire.open(port))
                if len(wires) % 500 == 0:
                    await asyncio.sleep(0)
            deadline = time.monotonic() + PATIENCE
            while f'\nstint_connections {number + 1}\n' not in self.watcher.get('/metrics').body.decode():
                self.assertLess(time.monotonic(), deadline)
                await asyncio.sleep(0.05)
            idle = rss(self.server.process.pid)
            bids = [bid(f'many/{i}', f'c{i}', ttl_ms=600_000) for i in range(number)]
            limit = asyncio.Semaphore(64)

            async def take(i):
                async with limit:
                    status, got = await wires[i].ask('/v1/acquire', bids[i])
                    self.assertEqual(status, 200, got)
                    return got
            grants = await asyncio.gather(*[take(i) for i in range(number)])
            held = rss(self.server.process.pid)

            async def renew(i):
                async with limit:
                    status, got = await wires[i].ask('/v1/renew', hold(bids[i], grants[i], ttl_ms=600_000, hint=grants[i]['hint']))
                    self.assertEqual(status, 200, got)
            begin = time.monotonic()
            for _ in range(2):
                await asyncio.gather(*[renew(i) for i in range(number)])
            took = time.monotonic() - begin
            print(f'{number} clients: {(idle - before) / number:.0f} bytes an idle client, {(held - idle) / number:.0f} bytes '
                  f'a lease, {2 * number / took:.0f} renewals/s (this client is the limit)')
        self.play(play)


class OverTls(TestCase):
    def test_who_says_good_bye_while_waiting_has_left(self):
        """The last words of TLS are bytes that nobody reads: the end behind them is noticed all the same."""
        server = Server()
        certificate(server.dir, 'tls')
        server.options = ['--tls-cert', f'{server.dir}/tls.pem', '--tls-key', f'{server.dir}/tls.key']
        with server:
            context = ssl.create_default_context(cafile=f'{server.dir}/tls.pem')
            watcher = http.client.HTTPSConnection('127.0.0.1', server.port, timeout=PATIENCE, context=context)
            self.addCleanup(watcher.close)

            def get(path):
                watcher.request('GET', path)
                return watcher.getresponse().read()
            server.stint('acquire', 'r', '--ttl', '1h')
            sock = socket.create_connection(('127.0.0.1', server.port), timeout=PATIENCE)
            self.addCleanup(sock.close)
            come, go = ssl.MemoryBIO(), ssl.MemoryBIO()
            tls = context.wrap_bio(come, go, server_hostname='127.0.0.1')
            while True:
                try:
                    tls.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    sock.sendall(go.read())
                    come.write(sock.recv(65536))
            body = json.dumps(bid('r', 'gone', wait_ms=600_000))
            tls.write(f'POST /v1/acquire HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n{body}'.encode())
            sock.sendall(go.read())
            until(lambda: b'\nstint_waiters 1\n' in get('/metrics'), 'it waits')
            try:
                tls.unwrap()
            except ssl.SSLWantReadError:
                pass
            good_bye = go.read()
            self.assertTrue(good_bye)
            sock.sendall(good_bye)
            sock.close()
            until(lambda: b'\nstint_waiters 0\n' in get('/metrics'), 'it has left')


class VanishedWithAKey(TestCase):
    """Who asked with an idempotency key and went away finds what it was granted: a repeat may have been told of it."""

    def vanish_while_asked_for(self, server, path, body, key, waiting):
        """The request is at the store, which is locked, when its client goes away. Whether it was there in time."""
        def number(name):
            return int(watcher.get('/metrics').body.decode().split(f'\n{name} ')[1].split('\n')[0])
        watcher, headers = server.client(), {'Idempotency-Key': key} if key else {}
        before = number('stint_waiters_vanished_total')
        lock = sqlite3.connect(f'{server.dir}/store.db', isolation_level=None)
        lock.execute('BEGIN IMMEDIATE')
        try:
            gone = server.client()
            gone.conn.request('POST', path, json.dumps(body), headers)
            try:
                until(lambda: number(waiting) == 1, 'it waits', 2)
                gone.close()
                until(lambda: number('stint_waiters_vanished_total') > before, 'it is gone', 2)
            except AssertionError:  # a slow machine: the store has given up waiting for the lock
                gone.close()
                return False
            # Who was only waiting has left the line.
            asked = number(waiting) == 1
        finally:
            lock.execute('ROLLBACK')
            lock.close()
        until(lambda: number(waiting) == 0, 'the store answered')
        return asked

    def found_again(self, path, bodies, renewed, waiting='stint_waiters'):
        with Server() as server:
            client = server.client()
            for i, body in enumerate(bodies):
                client.post('/v1/queues/put', {'queue': 'q', 'create': True})
                if not self.vanish_while_asked_for(server, path, body, f'k{i}', waiting):
                    continue
                got = client.post(path, body, headers={'Idempotency-Key': f'k{i}'})
                self.assertEqual(got.status, 200, got)
                self.assertEqual(renewed(client, body, got.json).status, 200)
                return
        self.fail('never asked for in time')

    def test_finds_its_lease(self):
        self.found_again('/v1/acquire', (bid(f'r{i}', 'o', wait_ms=600_000) for i in range(50)),
                         lambda client, body, got: client.post('/v1/renew', hold(body, got, ttl_ms=60_000)))

    def test_without_one_what_it_was_granted_is_given_back_and_counted(self):
        with Server() as server:
            client = server.client()
            for i in range(50):
                if self.vanish_while_asked_for(server, '/v1/acquire', bid(f'r{i}', 'o', wait_ms=600_000), '', 'stint_waiters'):
                    break
            until(lambda: not any(one['held'] for one in client.get('/v1/leases').json['leases']), 'it is given back')
            kinds = [one['kind'] for one in client.get('/v1/events?limit=1000').json['events']]
            told = {'granted': kinds.count('granted'), 'released': kinds.count('released')}
            self.assertEqual(told['granted'], told['released'], kinds)

            def counted():
                text = client.get('/metrics').body.decode()
                grants = sum(int(line.split()[1]) for line in text.splitlines() if line.startswith('stint_grants_total{'))
                return {'granted': grants, 'released': int(text.split('\nstint_releases_total ')[1].split('\n')[0])}
            until(lambda: counted() == told, f'what is counted is what was done: {told}', 10)

    def test_finds_its_item(self):
        body = {'queue': 'q', 'owner': 'w', 'wait_ms': 60_000}
        self.found_again('/v1/queues/claim', (body for _ in range(50)),
                         lambda client, _, got: client.post('/v1/queues/renew', {'id': got['item']['id'],
                                                                                 'epoch': got['item']['epoch']}),
                         'stint_queue_waiters')


if __name__ == '__main__':
    main()
