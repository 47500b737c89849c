"""kill -9 of the server under load, restarts, two servers on one store: no acknowledged grant lost, no token
repeated, no lease granted to two, and the same answer to the same request afterwards."""
import http.client
import json
import os
import random
import subprocess
import threading
import time

from databases import Etcd, Postgres, Redis
from harness import PATIENCE, STINT, Client, Server, TestCase, claim, count, main, until
from kept_test import ALL, Asks, lasting

CLIENTS = count('STINT_LOAD', 16)
KILLS = count('STINT_KILLS', 3)
RESOURCES = 12


class Load:
    """Clients that take and give back leases; what was acknowledged is written down."""

    def __init__(self, ports):
        self.ports, self.over = ports, threading.Event()
        self.lock = threading.Lock()
        self.grants = []      # (resource, token, claim, from, to): held for sure between the two moments
        self.requests = []    # (path, body, key, status, answer) that were acknowledged
        self.calls = self.repeated = 0

    def ask(self, state, path, body, key):
        """Until it is answered, always with the same idempotency key."""
        while True:
            try:
                if state.get('client') is None:
                    state['client'] = Client(random.choice(self.ports), timeout=20)
                answer = state['client'].post(path, body, headers={'Idempotency-Key': key})
                if answer.status not in (503, 504):
                    self.calls += 1
                    return answer
            except (OSError, http.client.HTTPException):
                pass
            self.repeated += 1
            if state.get('client'):
                state['client'].close()
            state['client'] = None
            if self.over.wait(0.02) and state.setdefault('patience', time.monotonic() + 60) < time.monotonic():
                raise AssertionError('nobody answers any more')

    def run(self, i):
        state, order = {}, random.Random(i)
        while not self.over.is_set():
            body = {'resource': f'r{order.randrange(RESOURCES)}', 'owner': f'c{i}', 'claim': claim(), 'ttl_ms': 600_000}
            key = claim()
            answer = self.ask(state, '/v1/acquire', body, key)
            begin = time.monotonic()
            if answer.status != 200:
                assert answer.status == 409, answer
                continue
            got = answer.json
            # Somebody else's release in between would be a second grant: the check must still say that it is ours.
            hold = {'resource': body['resource'], 'token': got['token'], 'claim': body['claim']}
            checked = self.ask(state, '/v1/check', hold, key)
            assert checked.status == 200, (got, checked)
            end = time.monotonic()
            key2 = claim()
            released = self.ask(state, '/v1/release', hold, key2)
            assert released.status == 200, released
            with self.lock:
                self.grants.append((body['resource'], got['token'], body['claim'], begin, end))
                self.requests.append(('/v1/acquire', body, key, answer))
                self.requests.append(('/v1/release', hold, key2, released))

    def check(self, test):
        by_resource = {}
        for resource, token, who, begin, end in self.grants:
            by_resource.setdefault(resource, []).append((token, who, begin, end))
        for resource, grants in by_resource.items():
            tokens = [token for token, *_ in grants]
            test.assertEqual(len(tokens), len(set(tokens)), f'{resource}: a token twice')
            grants.sort()
            for (_, _, _, end), (token, _, begin, _) in zip(grants, grants[1:]):
                test.assertLessEqual(end, begin, f'{resource}: token {token} while the one before was held')

    def replay(self, test, port):
        """Every mutating call again, with its key: the same answer."""
        c = Client(port)
        for path, body, key, first in self.requests[-400:]:
            again = c.post(path, body, headers={'Idempotency-Key': key})
            test.assertEqual(again.status, first.status, (path, first, again))
            test.assertTrue(again.json['replayed'])
            for name in ('token', 'owner', 'generation', 'held', 'state', 'granted_ttl_ms'):
                test.assertEqual(again.json[name], first.json[name], (path, name))
        c.close()


class QueueLoad(Load):
    """Clients that put, claim and complete items; each completion puts one more elsewhere."""

    def run(self, i):
        state = {}
        while not self.over.is_set():
            put = {'queue': 'load', 'payload': claim(), 'create': True}
            key = claim()
            one = self.ask(state, '/v1/queues/put', put, key)
            assert one.status == 200, one
            bid = {'queue': 'load', 'owner': f'c{i}', 'claim': claim(), 'ttl_ms': 600_000, 'start': True}
            key2 = claim()
            got = self.ask(state, '/v1/queues/claim', bid, key2)
            assert got.status == 200, got
            with self.lock:
                self.requests.append(('/v1/queues/put', put, key, one))
            if got.json['item'] is None:
                continue
            item = got.json['item']
            end = {'id': item['id'], 'epoch': item['epoch'], 'result': 'r', 'then': [{'queue': 'load-next', 'payload': item['id']}]}
            key3 = claim()
            done = self.ask(state, '/v1/queues/complete', end, key3)
            assert done.status == 200, (item, done)
            with self.lock:
                self.grants.append(item['id'])
                self.requests.append(('/v1/queues/claim', bid, key2, got))
                self.requests.append(('/v1/queues/complete', end, key3, done))

    def check(self, test):
        test.assertEqual(len(self.grants), len(set(self.grants)), 'an item was done twice')

    def replay(self, test, port):
        c = Client(port)

        def whole(queue):
            seen, after = [], ''
            while after is not None:
                page = c.get(f'/v1/queues/items?queue={queue}&limit=1000&after={after}').json
                seen += page['items']
                after = page.get('next')
            return seen
        for path, body, key, first in self.requests[-300:]:
            again = c.post(path, body, headers={'Idempotency-Key': key})
            test.assertEqual(again.status, 200, again)
            if path.endswith('claim'):
                names = ('id', 'epoch')
                test.assertEqual([again.json['item'][n] for n in names], [first.json['item'][n] for n in names])
            else:
                name = 'id' if path.endswith('put') else 'follow_ups'
                test.assertEqual(again.json[name], first.json[name], path)
        puts = {first.json['id'] for path, _, _, first in self.requests if path.endswith('put')}
        items = whole('load')
        test.assertEqual({item['id'] for item in items}, puts)
        test.assertEqual({item['id'] for item in items if item['state'] == 'done'}, set(self.grants))
        test.assertEqual(sorted(item['parent'] for item in whole('load-next')), sorted(self.grants))
        c.close()


def under_load(load, work):
    wrong = []

    def guarded(i):
        try:
            load.run(i)
        except BaseException as error:  # noqa: told below
            wrong.append(error)
            load.over.set()
    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        work()
    finally:
        load.over.set()
        for thread in threads:
            thread.join()
    if wrong:
        raise wrong[0]


def progress(load, more=20):
    target = len(load.grants) + more
    until(lambda: len(load.grants) >= target or load.over.is_set(), 'the clients get on')


class Crash(TestCase):
    # EVIDENCE-OF: G1 G2 G11
    def test_killed_under_load_and_started_again(self):
        self.killed_under_load()

    # Small files: segments and snapshots change under the load.
    # EVIDENCE-OF: G1 G2 G11
    def test_killed_under_load_on_a_log_store(self):
        self.killed_under_load(store='log:DIR/log?segment_kb=1024&snapshot_kb=256')

    def killed_under_load(self, **how):
        with Server(**how) as server:
            load = Load([server.port])

            def kills():
                for _ in range(KILLS):
                    progress(load)
                    server.kill()
                    server.start()
                progress(load)
            under_load(load, kills)
            load.check(self)
            load.replay(self, server.port)
            print(f'{KILLS} kills under {CLIENTS} clients: {len(load.grants)} grants, {load.repeated} requests repeated, '
                  f'0 lost, 0 tokens twice, 0 held by two')

    # EVIDENCE-OF: G8 G10
    def test_items_survive_kills_and_are_done_once_with_one_follow_up_each(self):
        with Server() as server:
            Client(server.port).post('/v1/queues/configure', {'queue': 'load-next', 'limits': {}})
            load = QueueLoad([server.port])

            def kills():
                for _ in range(KILLS):
                    progress(load)
                    server.kill()
                    server.start()
                progress(load)
            under_load(load, kills)
            load.check(self)
            load.replay(self, server.port)
            print(f'{KILLS} kills under {CLIENTS} clients: {len(load.grants)} items done, {load.repeated} requests repeated, '
                  f'0 done twice, 0 follow-ups missing or twice')

    def begun(self, server, ttl, script):
        """A run whose command has begun, as `script` shows by a file; nothing: the machine was too slow for this ttl."""
        for name in ('began', 'end', 'pid'):
            if os.path.exists(f'{server.dir}/{name}'):
                os.remove(f'{server.dir}/{name}')
        words = [STINT, 'run', 'r', '--on-held', 'wait=10m', '--ttl', f'{ttl}s', '--store', server.url, '--', 'sh', '-c', script]
        run = subprocess.Popen(words, env=server.env, stderr=subprocess.PIPE, text=True)
        until(lambda: os.path.exists(f'{server.dir}/began') or run.poll() is not None, 'the run began')
        if run.poll() is None:
            return run
        # Lost before the start, or at it: the deadline is counted from before the lease was asked for.
        _, said = run.communicate()
        self.assertIn(run.returncode, (12, 75), said)
        return None

    # The longer ones are for a machine on which the shorter say nothing: it starts runs and servers too slowly.
    TTLS = (20, 80, 320)

    def test_a_run_outlives_a_short_restart(self):
        with Server() as server:
            def outlives(ttl):
                run = self.begun(server, ttl, f'touch {server.dir}/began; while [ ! -e {server.dir}/end ]; do sleep 0.05; done')
                if run is None:
                    return False
                c = server.client()
                begin = time.monotonic()
                renewed = c.get('/v1/lease?resource=r').json['renewed_at_ms']
                server.kill()
                server.start()
                c = server.client()
                short = time.monotonic() - begin < ttl / 4
                until(lambda: run.poll() is not None or c.get('/v1/lease?resource=r').json['renewed_at_ms'] > renewed + 1000,
                      'it renewed afterwards', PATIENCE + ttl)
                open(f'{server.dir}/end', 'w').close()
                _, said = run.communicate(timeout=PATIENCE)
                if short:
                    self.assertEqual(run.returncode, 0, said)
                return short
            self.assertTrue(any(outlives(ttl) for ttl in self.TTLS), 'never within a quarter of a ttl')

    # EVIDENCE-OF: G6 G7
    def test_a_run_is_stopped_when_the_server_stays_away(self):
        with Server() as server:
            script = f'echo $$ > {server.dir}/pid; touch {server.dir}/began; exec sleep 1000'
            run = next(filter(None, (self.begun(server, ttl, script) for ttl in (3, 12, 48))), None)
            self.assertIsNotNone(run, 'no run ever began')
            server.kill()
            _, said = run.communicate(timeout=PATIENCE + 48)
            self.assertEqual(run.returncode, 75, said)
            with open(f'{server.dir}/pid') as file:
                pid = int(file.read())
            self.assertFalse(os.path.exists(f'/proc/{pid}') and 'sleep' in open(f'/proc/{pid}/comm').read())


class TwoServers(TestCase):
    # EVIDENCE-OF: G1 G2
    def test_one_of_two_on_one_postgresql_is_killed(self):
        self.one_is_killed(Postgres)

    # EVIDENCE-OF: G1 G2
    def test_one_of_two_on_one_redis_is_killed(self):
        self.one_is_killed(Redis)

    # EVIDENCE-OF: G1 G2
    def test_one_of_two_on_one_etcd_is_killed(self):
        self.one_is_killed(Etcd)

    def one_is_killed(self, kind):
        database = kind()
        self.addCleanup(database.close)
        with Server(store=database.url) as one, Server(store=database.url) as two:
            load, items = Load([one.port, two.port]), QueueLoad([one.port, two.port])
            two.client().post('/v1/queues/configure', {'queue': 'load-next', 'limits': {}})
            for each in (load, items):
                def kill_one(each=each):
                    progress(each)
                    one.kill()
                    progress(each)
                    one.start()
                    progress(each)
                under_load(each, kill_one)
                each.check(self)
                # What either was asked is answered the same by the other.
                each.replay(self, two.port)
                each.replay(self, one.port)
            self.woken_across(one, two)
            self.keys_across(one, two)
            print(f'two servers on {kind.__name__}: {len(load.grants)} grants, {len(items.grants)} items done, '
                  f'{load.repeated + items.repeated} requests repeated')

    def woken_across(self, one, two):
        """What waits at one is woken by a release at the other."""
        a, b = one.client(), two.client()
        granted = a.acquire('across')
        got = []
        waiter = threading.Thread(target=lambda: got.append(b.acquire('across', wait_ms=60_000)))
        waiter.start()
        watcher = two.client()
        until(lambda: b'\nstint_waiters 1\n' in watcher.get('/metrics').body, 'it waits')
        a.post('/v1/release', {'resource': 'across', 'token': granted.json['token'], 'claim': granted.claim})
        waiter.join()
        self.assertEqual(got[0].status, 200)

    def keys_across(self, one, two):
        """A key that is made at one is known at the other, and so is that it was revoked; every answer crosses."""
        admin = one.client().post('/v1/keys', {'name': 'admin', 'allow': ALL.split(',')}).json['secret']
        a, b = one.client(admin), two.client(admin)
        until(lambda: b.get('/v1/store').json.get('key') == 'admin', 'the other knows the key')
        self.assertEqual(until(lambda: two.client().get('/v1/store').status == 401, 'it asks for one'), True)
        asked = dict(Asks(a).bodies())
        for path, body in asked.items():
            first = a.post(path, body, headers={'Idempotency-Key': path})
            again = b.post(path, body, headers={'Idempotency-Key': path})
            self.assertEqual((first.status, again.status), (200, 200), (path, first, again))
            self.assertEqual(lasting(again, path), lasting(first, path), path)
            self.assertIn('age_ms', again.json, path)
            wrong = b.call('POST', path, raw=json.dumps(body) + ' ', headers={'Idempotency-Key': path})
            self.assertEqual(wrong.status, 422, path)
        made = a.post('/v1/keys', {'name': 'short', 'allow': ['read']}).json
        short = two.client(made['secret'])
        until(lambda: short.get('/v1/store').status == 200, 'the other knows it')
        a.post('/v1/keys/revoke', {'key': made['id']})
        until(lambda: short.get('/v1/store').status == 401, 'the other knows that it is revoked', patience=10)


if __name__ == '__main__':
    main()
