"""The verbs over HTTP: what each answers, keys and their limits, idempotency keys, events."""
import json
import os
import socket
import threading
import time

from harness import LosesOneAnswer, Server, TestCase, claim, count, in_threads, main, until


class LostAnswers(TestCase):
    """The program, whose request was carried out and not answered, and who is let in before it asks again."""

    def play(self, path, meanwhile, *words, instead=None):
        with Server() as server:
            with LosesOneAnswer(server.port, path, lambda: meanwhile(server.client()), instead) as relay:
                token = server.stint('acquire', 'lost', store=relay.url).stdout.strip()
                done = server.stint(words[0], *words[1:], '--token', token, store=relay.url, check=False)
                self.assertTrue(relay.lost)
                return done

    def test_a_release_that_another_grant_followed_stays_unknown(self):
        done = self.play('/v1/release', lambda c: c.acquire('lost', owner='bob'), 'release', 'lost')
        self.assertEqual(done.returncode, 14, done.stderr)

    def test_a_release_that_something_between_answered_for_stays_unknown(self):
        for status in (200, 502):
            done = self.play('/v1/release', lambda c: c.acquire('lost', owner='bob'), 'release', 'lost', instead=status)
            self.assertEqual(done.returncode, 14, done.stderr)

    def test_a_release_is_settled_while_its_effect_can_be_seen(self):
        done = self.play('/v1/release', lambda c: None, 'release', 'lost')
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_check_is_a_look_and_says_what_is(self):
        def take_over(client):
            lease = client.get('/v1/lease?resource=lost').json
            client.post('/v1/revoke', {'resource': 'lost', 'token': lease['token'], 'why': 'w', 'by': 'b'})
        done = self.play('/v1/check', take_over, 'check', 'lost')
        self.assertEqual(done.returncode, 12, done.stderr)


class LostAnswersOfQueues(TestCase):
    """The same for items of a queue: a put is one item, a claim is the same claim, follow-ups are put once."""

    def test_a_put_whose_answer_was_lost_is_one_item(self):
        with Server() as server, LosesOneAnswer(server.port, '/v1/queues/put', lambda: None) as relay:
            done = server.stint('queue', 'put', 'q', 'payload', '--create', store=relay.url)
            self.assertTrue(relay.lost)
            items = server.client().get('/v1/queues/items?queue=q').json['items']
            self.assertEqual([one['id'] for one in items], [done.stdout.strip()])

    def test_a_claim_whose_answer_was_lost_is_the_same_claim(self):
        with Server() as server, LosesOneAnswer(server.port, '/v1/queues/claim', lambda: None) as relay:
            ids = [server.stint('queue', 'put', 'q', str(i), '--create').stdout.strip() for i in range(2)]
            got = json.loads(server.stint('queue', 'claim', 'q', '--json', store=relay.url).stdout)
            self.assertTrue(relay.lost)
            self.assertEqual(got['id'], ids[0])
            states = {one['id']: one['state'] for one in server.client().get('/v1/queues/items?queue=q').json['items']}
            self.assertEqual(states, {ids[0]: 'claimed', ids[1]: 'waiting'})

    def complete(self, meanwhile):
        with Server() as server:
            item = server.stint('queue', 'put', 'q', 'x', '--create').stdout.strip()
            server.stint('queue', 'claim', 'q')
            with LosesOneAnswer(server.port, '/v1/queues/complete', lambda: meanwhile(server.client(), item)) as relay:
                done = server.stint('queue', 'complete', item, '--epoch', '1', '--then', 'q:next', '--json',
                                    store=relay.url, check=False)
                self.assertTrue(relay.lost)
            left = server.client().get('/v1/queues/items?queue=q&state=waiting').json['items']
            return done, item, left

    def test_a_completion_whose_answer_was_lost_puts_its_follow_ups_once_and_names_them(self):
        done, _, left = self.complete(lambda c, item: None)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)['follow_ups'], [one['id'] for one in left])

    def test_it_was_done_whatever_an_operator_did_since(self):
        done, item, left = self.complete(lambda c, item: c.post('/v1/queues/replay', {'id': item, 'why': 'w', 'by': 'b'}))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(one['id'] for one in left if one['id'] != item), json.loads(done.stdout)['follow_ups'])


class LostAnswersOfSlots(TestCase):
    """The step `start` of a slot: told twice it is done; when the lease has gone meanwhile, nobody can know."""

    def play(self, meanwhile):
        with Server() as server:
            path = f'{server.dir}/stint.toml'
            with open(path, 'w') as file:
                file.write('[job.j]\nschedule = "0 0 1 1 *"\ncommand = ["touch", "%s/ran"]\n' % server.dir)
            with LosesOneAnswer(server.port, '/v1/jobs/start', lambda: meanwhile(server.client())) as relay:
                done = server.stint('cron', 'run', 'j', '--slot', '2026-01-01T00:00:00Z', '--file', path, store=relay.url, check=False)
                self.assertTrue(relay.lost, done.stderr)
            slots = server.client().get('/v1/jobs/slots?job=j').json['slots']
            return done, os.path.exists(f'{server.dir}/ran'), [one['state'] for one in slots]

    def test_a_start_whose_answer_was_lost_is_asked_again(self):
        done, ran, states = self.play(lambda c: None)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(ran)
        self.assertEqual(states, ['ran'])

    def test_a_start_that_is_gone_when_asked_again_starts_nothing(self):
        def take_over(client):
            lease = client.get('/v1/lease?resource=j').json
            client.post('/v1/revoke', {'resource': 'j', 'token': lease['token'], 'why': 'w', 'by': 'b'})
        done, ran, _ = self.play(take_over)
        self.assertNotEqual(done.returncode, 0, done.stderr)
        self.assertFalse(ran)


class Verbs(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()
        cls.c = cls.server.client()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def hold(self, verb, name, granted, **more):
        return self.c.post(f'/v1/{verb}', {'resource': name, 'token': granted.json['token'], 'claim': granted.claim,
                                           **more})

    def test_a_lease_from_grant_to_release(self):
        granted = self.c.acquire('verbs/one', note='at work')
        self.assertEqual((granted.status, granted.json['held'], granted.json['reason']), (200, True, 'first'))
        held = self.c.acquire('verbs/one', owner='bob')
        self.assertEqual((held.status, held.code), (409, 'held'))
        self.assertIn('retry-after', held.headers)
        self.assertEqual(held.json['error']['lease']['owner'], 'ann')
        self.assertIn("held by 'ann'", held.json['error']['message'])
        self.assertEqual(self.hold('renew', 'verbs/one', granted, ttl_ms=90_000).json['granted_ttl_ms'], 90_000)
        self.assertEqual(self.hold('check', 'verbs/one', granted).status, 200)
        self.assertEqual(self.hold('progress', 'verbs/one', granted, marker='half').json['progress'], 'half')
        self.assertEqual(self.c.get('/v1/lease?resource=verbs%2Fone').json['progress'], 'half')
        self.assertEqual(self.hold('release', 'verbs/one', granted).status, 200)
        self.assertEqual(self.hold('release', 'verbs/one', granted).status, 200)
        gone = self.hold('renew', 'verbs/one', granted, ttl_ms=1000)
        self.assertEqual((gone.status, gone.code, gone.json['error']['cause']), (410, 'lost', 'released'))
        again = self.c.acquire('verbs/one', owner='bob')
        self.assertEqual((again.json['token'], again.json['previous_progress']), (granted.json['token'] + 1, 'half'))

    def test_the_same_claim_gets_the_same_grant(self):
        mine = claim()
        first = self.c.acquire('verbs/same', claim=mine)
        second = self.c.acquire('verbs/same', claim=mine)
        self.assertEqual(first.json['token'], second.json['token'])
        self.assertTrue(second.json['replayed'])

    def test_several_resources_are_all_or_nothing(self):
        self.c.acquire('verbs/b')
        mine = claim()
        body = {'resources': ['verbs/c', 'verbs/b', 'verbs/a'], 'owner': 'bob', 'claim': mine, 'ttl_ms': 9000}
        self.assertEqual(self.c.post('/v1/acquire', body).status, 409)
        for name in ('verbs%2Fa', 'verbs%2Fc'):
            self.assertFalse(self.c.get(f'/v1/lease?resource={name}').json['held'])
        body['resources'] = ['verbs/c', 'verbs/a']
        answer = self.c.post('/v1/acquire', body)
        self.assertEqual([one['resource'] for one in answer.json['leases']], ['verbs/a', 'verbs/c'])

    def test_many_are_renewed_at_once(self):
        granted = [self.c.acquire(f'many/{i}') for i in range(5)]
        leases = [{'resource': f'many/{i}', 'token': one.json['token'], 'claim': one.claim}
                  for i, one in enumerate(granted)]
        leases[3]['claim'] = claim()
        results = self.c.post('/v1/renew', {'leases': leases, 'ttl_ms': 70_000}).json['results']
        self.assertEqual([one.get('granted_ttl_ms') for one in results], [70_000] * 3 + [None, 70_000])
        self.assertEqual(results[3]['error']['code'], 'lost')

    def test_pages_and_history(self):
        for i in range(5):
            self.c.acquire(f'page/{i}')
        first = self.c.get('/v1/leases?prefix=page/&limit=3').json
        self.assertEqual([one['resource'] for one in first['leases']], ['page/0', 'page/1', 'page/2'])
        rest = self.c.get(f'/v1/leases?prefix=page/&limit=3&after={first["next"]}').json
        self.assertEqual([one['resource'] for one in rest['leases']], ['page/3', 'page/4'])
        self.assertNotIn('next', rest)
        self.assertEqual(self.c.get('/v1/history?resource=page/0').json['history'][0]['owner'], 'ann')

    def test_an_operator_moves_the_token(self):
        granted = self.c.acquire('order/a')
        first = granted.json['token']
        order = {'resource': 'order/a', 'token': first, 'why': 'stuck', 'by': 'op'}
        self.assertEqual(self.c.post('/v1/transfer', {**order, 'to': 'heir'}).json['state'], 'reserved')
        wrong = self.c.post('/v1/revoke', order)
        self.assertEqual((wrong.status, wrong.json['error']['cause']), (410, 'wrong_token'))
        self.assertEqual(self.hold('renew', 'order/a', granted, ttl_ms=9000).json['error']['cause'], 'transferred')
        self.assertEqual(self.c.acquire('order/a', owner='heir').json['reason'], 'taken_up')
        self.assertEqual(self.c.post('/v1/revoke', {**order, 'token': first + 1}).status, 200)
        self.assertEqual(self.c.post('/v1/forget', {'resource': 'order/a'}).json['floor'], first + 2)

    def test_fences(self):
        granted = self.c.acquire('fence/r').json
        offer = {'resource': 'fence/r', 'token': granted['token'], 'generation': granted['generation']}
        ask = {'target': 'file:/x', 'offer': offer}
        self.assertEqual(self.c.post('/v1/fences/seal', ask).json['verdict'], 'admitted')
        old = granted['token']
        self.assertEqual(self.c.get('/v1/fences?target=file:/x').json['fence']['token'], old)
        self.c.post('/v1/revoke', {'resource': 'fence/r', 'token': old, 'why': 'w', 'by': 'b'})
        new = {**offer, 'token': self.c.acquire('fence/r').json['token']}
        self.assertEqual(new['token'], old + 2)
        self.assertEqual(self.c.post('/v1/fences/admit', {'target': 'file:/x', 'offer': new}).status, 200)
        stale = self.c.post('/v1/fences/admit', ask)
        self.assertEqual((stale.status, stale.code, stale.json['fence']['token']), (412, 'stale', old + 2))
        never = self.c.post('/v1/fences/admit', {'target': 'file:/x', 'offer': {**offer, 'token': 99}})
        self.assertEqual((never.status, never.code), (403, 'never_issued'))
        none = self.c.post('/v1/fences/admit', {'target': 'file:/x', 'offer': {**offer, 'token': 0}})
        self.assertEqual((none.status, none.code), (428, 'no_token'))

    def test_an_idempotency_key_gives_the_same_answer(self):
        body = {'resource': 'once/a', 'owner': 'ann', 'claim': claim(), 'ttl_ms': 9000}
        key = {'Idempotency-Key': 'first'}
        first = self.c.post('/v1/acquire', body, headers=key).json
        hold = {'resource': 'once/a', 'token': first['token'], 'claim': body['claim']}
        released = self.c.post('/v1/release', hold, headers={'Idempotency-Key': 'second'}).json
        # The lease is free, and the first answer is given all the same: no second grant.
        again = self.c.post('/v1/acquire', body, headers=key).json
        self.assertTrue(again['replayed'])
        self.assertGreaterEqual(again['age_ms'], 0)
        for name in ('token', 'owner', 'generation', 'reason', 'acquired_at_ms', 'granted_ttl_ms', 'held'):
            self.assertEqual(first[name], again[name], name)
        self.assertFalse(self.c.get('/v1/lease?resource=once/a').json['held'])
        twice = self.c.post('/v1/release', hold, headers={'Idempotency-Key': 'second'}).json
        self.assertEqual((twice['replayed'], twice['token']), (True, released['token']))
        other = self.c.post('/v1/acquire', {**body, 'owner': 'eve'}, headers=key)
        self.assertEqual((other.status, other.code), (422, 'invalid'))
        self.assertEqual(self.c.post('/v1/release', hold, headers=key).status, 422)

    def test_a_refusal_is_decided_anew_and_a_renewal_never_replayed(self):
        granted = self.c.acquire('once/r')
        body = {'resource': 'once/r', 'owner': 'bob', 'claim': claim(), 'ttl_ms': 9000}
        key = {'Idempotency-Key': 'third'}
        self.assertEqual(self.c.post('/v1/acquire', body, headers=key).status, 409)
        renewed = {'resource': 'once/r', 'token': granted.json['token'], 'claim': granted.claim, 'ttl_ms': 50_000}
        for _ in range(2):
            answer = self.c.post('/v1/renew', renewed, headers={'Idempotency-Key': 'fourth'})
            self.assertEqual((answer.status, answer.json['replayed']), (200, False))
        self.hold('release', 'once/r', granted)
        self.assertEqual(self.c.post('/v1/renew', renewed, headers={'Idempotency-Key': 'fourth'}).status, 410)
        self.assertEqual(self.c.post('/v1/acquire', body, headers=key).status, 200)

    # EVIDENCE-OF: G2
    def test_the_same_list_twice_at_once_is_told_what_stands(self):
        """One try finds the last one held, and gives the others back; the same request beside it must not tell of those."""
        c, asking = self.c, [self.server.client() for _ in range(3)]
        for i in range(count('STINT_LISTS', 300)):
            names = [f'lists/{i}/a', f'lists/{i}/b']
            held = {'resource': names[1], 'claim': claim()}
            held['token'] = c.post('/v1/acquire', {'owner': 'other', 'ttl_ms': 60_000, **held}).json['token']
            bid = {'resources': names, 'owner': 'me', 'claim': claim(), 'ttl_ms': 60_000}
            asks = [('/v1/acquire', bid), ('/v1/acquire', bid), ('/v1/release', held)]
            begin, told = threading.Barrier(3), [None] * 3

            def ask(n):
                begin.wait()
                time.sleep((0, i % 12 * 2e-4, i % 7 * 3e-4)[n])  # one after the other, by each of many distances
                told[n] = asking[n].post(*asks[n], headers={'Idempotency-Key': f'list-{i}-{n // 2}'})
            in_threads(3, ask)
            for answer in told[:2]:
                self.assertIn(answer.status, (200, 409), answer)
                for lease in answer.json.get('leases', []):
                    still = c.post('/v1/check', {'resource': lease['resource'], 'claim': bid['claim'], 'token': lease['token']})
                    self.assertEqual(still.status, 200, f'round {i}: told {[one.status for one in told]}, and then {still}')

    def test_several_under_one_key_are_all_held_or_none(self):
        other = self.c.acquire('many-b', 'other')
        body = {'resources': ['many-a', 'many-b'], 'owner': 'o', 'claim': claim(), 'ttl_ms': 60_000}
        key = {'Idempotency-Key': 'several'}
        for _ in range(2):
            self.assertEqual(self.c.post('/v1/acquire', body, headers=key).status, 409)
            self.assertFalse(self.c.get('/v1/lease?resource=many-a').json['held'])
        # Waiting: it asks again and again under the same key.
        waiting = self.server.client()
        waiting.conn.request('POST', '/v1/acquire', json.dumps({**body, 'wait_ms': 60_000}),
                             {'Idempotency-Key': 'several waiting'})
        until(lambda: 'stint_waiters 1\n' in self.c.get('/metrics').body.decode(), 'it waits')
        self.c.post('/v1/release', {'resource': 'many-b', 'token': other.json['token'], 'claim': other.claim})
        waited = json.loads(waiting.conn.getresponse().read())['leases']
        for lease in waited:
            hold = {'resource': lease['resource'], 'token': lease['token'], 'claim': body['claim']}
            self.assertEqual(self.c.post('/v1/renew', {**hold, 'ttl_ms': 60_000}).status, 200, lease)
            self.assertEqual(self.c.post('/v1/release', hold).status, 200)
        got = self.c.post('/v1/acquire', body, headers=key)
        self.assertEqual(got.status, 200, got)
        again = self.c.post('/v1/acquire', body, headers=key)
        for lease, twice in zip(got.json['leases'], again.json['leases']):
            self.assertEqual((lease['token'], lease.get('replayed', False), twice['replayed']), (twice['token'], False, True))
            hold = {'resource': lease['resource'], 'token': lease['token'], 'claim': body['claim'], 'ttl_ms': 60_000}
            self.assertEqual(self.c.post('/v1/renew', hold).status, 200, lease)

    def test_a_claim_that_the_server_made_comes_again_with_the_key(self):
        body = {'resource': 'once/c', 'owner': 'ann', 'ttl_ms': 60_000}
        first = self.c.post('/v1/acquire', body, headers={'Idempotency-Key': 'made'}).json
        again = self.c.post('/v1/acquire', body, headers={'Idempotency-Key': 'made'}).json
        self.assertEqual(first['claim'], again['claim'])
        hold = {'resource': 'once/c', 'token': first['token'], 'claim': first['claim']}
        self.assertEqual(self.c.post('/v1/release', hold).status, 200)

    def test_events_stream_and_resume(self):
        self.c.acquire('stream/a')
        after = self.c.get('/v1/events?prefix=stream/&newest=true&limit=1').json['events'][0]['number']

        def read(headers, want):
            sock = socket.create_connection(('127.0.0.1', self.server.port), timeout=60)
            lines = ''.join(f'{k}: {v}\r\n' for k, v in headers.items())
            sock.sendall(f'GET /v1/events?prefix=stream/ HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{lines}\r\n'
                         .encode())
            got = b''
            while got.count(b'data: ') < want:
                piece = sock.recv(65536)
                self.assertTrue(piece, got)
                got += piece
            sock.close()
            return [json.loads(line[6:]) for line in got.decode().splitlines() if line.startswith('data: ')]
        seen = []
        reader = threading.Thread(target=lambda: seen.extend(read({'Last-Event-ID': after}, 2)))
        reader.start()
        self.c.acquire('stream/b')
        self.c.acquire('other/b')
        self.c.acquire('stream/c')
        reader.join()
        self.assertEqual([one['resource'] for one in seen], ['stream/b', 'stream/c'])
        rest = read({'Last-Event-ID': seen[0]['number']}, 1)
        self.assertEqual([one['resource'] for one in rest], ['stream/c'])

    def test_the_command_line_speaks_to_it(self):
        def stint(*words, **more):
            return self.server.stint(*words, store=self.server.url, **more)
        token = stint('acquire', 'cli/a', '--owner', 'ann').stdout.strip()
        self.assertEqual(stint('acquire', 'cli/a', '--owner', 'bob', check=False).returncode, 11)
        stint('renew', 'cli/a', '--token', token)
        self.assertIn('cli/a', stint('ls').stdout)
        stint('release', 'cli/a', '--token', token)
        ran = stint('run', 'cli/a', '--', 'sh', '-c', 'echo $STINT_TOKEN; exit 7', check=False)
        self.assertEqual((ran.returncode, ran.stdout.strip()), (7, str(int(token) + 1)))
        self.assertIn('granted', stint('events', '--json').stdout)
        self.assertEqual(len(json.loads(stint('history', 'cli/a', '--json').stdout)), 2)
        no = stint('doctor', '--accept-restored', '--why', 'w', check=False)
        self.assertNotEqual(no.returncode, 0)
        self.assertIn('server', no.stderr + no.stdout)

    def test_a_waiting_run_gets_its_turn(self):
        granted = self.c.acquire('turn/a')
        waited = []
        waiter = threading.Thread(target=lambda: waited.append(self.server.stint(
            'run', 'turn/a', '--on-held', 'wait=50s', '--', 'true', store=self.server.url, check=False)))
        waiter.start()
        until(lambda: b'\nstint_event_streams 0' not in self.c.get('/metrics').body, 'the run watches the lease')
        self.hold('release', 'turn/a', granted)
        waiter.join()
        self.assertEqual(waited[0].returncode, 0, waited[0].stderr)
        self.assertEqual(self.c.get('/v1/lease?resource=turn/a').json['token'], granted.json['token'] + 1)

    def test_health_and_metrics(self):
        self.assertTrue(self.c.get('/healthz').json['ok'])
        self.assertTrue(self.c.get('/readyz').json['ok'])
        self.c.acquire('metric/a')
        text = self.c.get('/metrics').body.decode()
        self.assertRegex(text, r'stint_grants_total\{reason="first"\} \d+')
        self.assertRegex(text, r'stint_build_info\{version="[^"]+"')

    def test_what_is_counted_is_what_is_in_the_ledger(self):
        with Server() as server:
            c = server.client()
            c.acquire('count/b', 'other')
            for _ in range(3):
                # Taken and given back: the second one is held.
                both = c.post('/v1/acquire', {'resources': ['count/a', 'count/b'], 'owner': 'o', 'ttl_ms': 60_000})
                self.assertEqual(both.status, 409)
                alone = c.acquire('count/c')
                self.assertEqual(c.post('/v1/release', {'resource': 'count/c', 'token': alone.json['token'], 'claim': alone.claim}).status, 200)
            kinds = [one['kind'] for one in c.get('/v1/events?limit=1000').json['events']]
            text = c.get('/metrics').body.decode()
            grants = sum(int(line.split()[1]) for line in text.splitlines() if line.startswith('stint_grants_total{'))
            self.assertEqual((grants, kinds.count('granted')), (7, 7))
            self.assertIn(f'\nstint_releases_total {kinds.count("released")}\n', text)
            self.assertIn('\nstint_store_queue 0\n', text)

    def test_connections_are_counted_while_they_come_and_go(self):
        """The thread sanitizer looks here: a worker counted what the loop changed."""
        def connections(client):
            return int(client.get('/metrics').body.decode().split('\nstint_connections ')[1].split('\n')[0])
        with Server() as server:
            watcher = server.client()

            def come_and_go(i):
                for _ in range(25):
                    one = server.client()
                    if i == 0:
                        self.assertGreaterEqual(connections(one), 2)
                    else:
                        self.assertEqual(one.get('/healthz').status, 200)
                    one.close()
            self.assertEqual(connections(watcher), 1)
            in_threads(4, come_and_go)
            until(lambda: connections(watcher) == 1, 'the others are gone')


if __name__ == '__main__':
    main()
