"""Idempotency keys: every path of /v1/openapi.json that takes one is asked with it, the server is killed with -9 and started
again, and the same request gets the same answer; another body is 422; another API key is another request."""
import hashlib
import json

from harness import LosesOneAnswer, Server, TestCase, claim, in_threads, main, until

# What tells of the moment at which an answer is given, and not of what was done.
OF_THE_MOMENT = ('replayed', 'repeated', 'age_ms', 'store_time_ns')
ALL = 'read,acquire,admit,queue,schedule,operate,admin'


class Asks:
    """One request of each path that takes an idempotency key, of which the first one is done."""

    def __init__(self, client, tag=''):
        self.c, self.tag = client, tag
        self.generation = client.get('/v1/store').json['generation']
        now = client.get('/v1/jobs/now').json['now_ms']
        self.rule = {'name': f'k{tag}-job', 'schedule': '0 0 1 1 *', 'loaded_at_ms': now}

    def post(self, path, body):
        answer = self.c.post(path, body)
        assert answer.status == 200, (path, answer)
        return answer.json

    def lease(self, name, **more):
        mine = {'resource': f'k{self.tag}/{name}', 'owner': 'o', 'claim': claim(), 'ttl_ms': 600_000, **more}
        got = self.post('/v1/acquire', mine)
        return {'resource': mine['resource'], 'token': got['token'], 'claim': mine['claim']}

    def offer(self, name):
        held = self.lease(name)
        return {'resource': held['resource'], 'token': held['token'], 'generation': self.generation}

    def item(self, queue, claimed=True):
        queue = f'k{self.tag}-{queue}'
        put = self.post('/v1/queues/put', {'queue': queue, 'payload': 'p', 'create': True})
        if not claimed:
            return {'id': put['id'], 'why': 'w', 'by': 'b'}
        got = self.post('/v1/queues/claim', {'queue': queue, 'owner': 'w', 'ttl_ms': 600_000})['item']
        return {'id': got['id'], 'epoch': got['epoch']}

    def slot(self, name, *steps):
        """A due slot of a job of its own, with a lease for it, as far as those steps."""
        rule = {**self.rule, 'name': f'k{self.tag}-{name}'}
        held = self.lease(f'slot-{name}')
        at = self.post('/v1/jobs/add', {'rule': rule, 'scheduler': 's'})['at_ms']
        slot = {'job': rule['name'], 'at_ms': at, 'scheduler': 's', 'owner': 'o', **held}
        for step in steps:
            self.post(f'/v1/jobs/{step}', slot)
        return slot, rule

    def order(self, name):
        held = self.lease(name)
        return {'resource': held['resource'], 'token': held['token'], 'why': 'w', 'by': 'b'}

    def begun(self):
        offer, act = self.offer('finish'), {'name': f'n{self.tag}', 'key': 'finish', 'owner': 'o'}
        self.post('/v1/fences/begin', {'offer': offer, 'act': act})
        return {'offer': offer, 'act': {**act, 'exit_code': 0, 'digest': 'd', 'ended_at_ms': 1}}

    def free(self):
        held = self.lease('forget')
        self.post('/v1/release', held)
        return {'resource': held['resource']}

    def done_item(self):
        ref = self.item('replay')
        self.post('/v1/queues/complete', ref)
        return {'id': ref['id'], 'why': 'w', 'by': 'b'}

    def remembered(self):
        offer = self.offer('fforget')
        self.post('/v1/fences/remember', {'offer': offer, 'targets': ['file:/f']})
        return {'resource': offer['resource'], 'target': 'file:/f'}

    def job(self, name, paused=False):
        rule = {**self.rule, 'name': f'k{self.tag}-{name}'}
        self.post('/v1/jobs/decide', {'scheduler': 's', 'asks': [{'rule': rule}]})
        if paused:
            self.post('/v1/jobs/pause', {'job': rule['name']})
        return {'job': rule['name']}

    def due(self):
        """Of a job whose due slots are kept for one scheduler."""
        rule = {**self.rule, 'name': f'k{self.tag}-keep'}
        self.post('/v1/jobs/add', {'rule': rule, 'scheduler': 's'})
        self.post('/v1/jobs/decide', {'scheduler': 's', 'asks': [{'rule': rule}]})
        return {'job': rule['name']}

    def once(self, name, begun):
        key = f'k{self.tag}{name}'
        held = {'resource': f'once/{key}', 'owner': 'o', 'claim': claim(), 'ttl_ms': 600_000}
        token = self.post('/v1/acquire', held)['token']
        grip = {'key': key, 'resource': held['resource'], 'token': token, 'claim': held['claim']}
        if begun:
            self.post('/v1/once/start', {**grip, 'owner': 'o'})
            return {**grip, 'exit_code': 0}
        return {**grip, 'owner': 'o'}

    def completion(self):
        """With as many follow-ups of as long names as there may be: more than a record has room for."""
        ref = self.item('complete')
        then = []
        for i in range(50):
            queue = f'k{self.tag}-' + f'{i:03}' + 'q' * 90
            self.post('/v1/queues/configure', {'queue': queue, 'limits': {}})
            then.append({'queue': queue, 'payload': str(i)})
        return {**ref, 'result': 'r', 'then': then}

    def end(self):
        slot, rule = self.slot('end', 'claim', 'start')
        return {**slot, 'state': 'ran', 'exit_code': 0, 'rule': rule}

    def skip(self):
        slot, _ = self.slot('skip')
        return {'job': slot['job'], 'at_ms': slot['at_ms'], 'scheduler': 's', 'state': 'skipped_held'}

    def bodies(self):
        """Of each path: what makes the body of a request that will be done."""
        tag = self.tag
        waiting = lambda queue: self.item(queue, claimed=False)
        parked = waiting('requeue')
        self.post('/v1/queues/park', parked)
        made = self.post('/v1/keys', {'name': f'k{tag}-gone', 'allow': ['read']})
        self.post('/v1/queues/put', {'queue': f'k{tag}-claim', 'payload': 'p', 'create': True})
        yield from {
            '/v1/acquire': {'resource': f'k{tag}/acquire', 'owner': 'o', 'ttl_ms': 600_000},
            '/v1/release': self.lease('release'), '/v1/stall': self.lease('stall'),
            '/v1/progress': {**self.lease('progress'), 'marker': 'm'},
            '/v1/transfer': {**self.order('transfer'), 'to': 'heir'}, '/v1/revoke': self.order('revoke'), '/v1/forget': self.free(),
            '/v1/events': {'event': {'at_ms': 1, 'kind': 'note', 'resource': f'k{tag}/e', 'owner': 'o'}},
            '/v1/fences/remember': {'offer': self.offer('remember'), 'targets': ['file:/r']},
            '/v1/fences/forget': self.remembered(),
            '/v1/fences/admit': {'offer': self.offer('admit'), 'target': f'k{tag}-admit'},
            '/v1/fences/seal': {'offer': self.offer('seal'), 'target': f'k{tag}-seal'},
            '/v1/fences/begin': {'offer': self.offer('begin'), 'act': {'name': f'b{tag}', 'key': 'begin', 'owner': 'o'}},
            '/v1/fences/finish': self.begun(),
            '/v1/keys': {'name': f'k{tag}-made', 'allow': ['read']}, '/v1/keys/revoke': {'key': made['id']},
            '/v1/queues/configure': {'queue': f'k{tag}-conf', 'limits': {'max_attempts': 9}},
            '/v1/queues/put': {'queue': f'k{tag}-put', 'payload': 'p', 'create': True},
            '/v1/queues/claim': {'queue': f'k{tag}-claim', 'owner': 'w', 'ttl_ms': 600_000},
            '/v1/queues/start': self.item('start'), '/v1/queues/checkpoint': {**self.item('checkpoint'), 'marker': 'm', 'data': 'd' * 9000},
            '/v1/queues/complete': self.completion(), '/v1/queues/fail': {**self.item('fail'), 'why': 'w'},
            '/v1/queues/release': self.item('release'), '/v1/queues/park': waiting('park'), '/v1/queues/requeue': parked,
            '/v1/queues/reassign': {**waiting('reassign'), 'to': 'heir', 'hold_ms': 600_000}, '/v1/queues/cancel': waiting('cancel'),
            '/v1/queues/replay': self.done_item(), '/v1/queues/drop': waiting('drop'), '/v1/queues/tend': {'queue': f'k{tag}-claim'},
            '/v1/jobs/decide': {'scheduler': 's', 'asks': [{'rule': {**self.rule, 'name': f'k{tag}-decide'}}]},
            '/v1/jobs/keep': self.due(), '/v1/jobs/claim': self.slot('claim')[0], '/v1/jobs/start': self.slot('start', 'claim')[0],
            '/v1/jobs/running': self.slot('running', 'claim', 'start')[0], '/v1/jobs/hand_back': self.slot('back', 'claim')[0],
            '/v1/jobs/end': self.end(), '/v1/jobs/skip': self.skip(), '/v1/jobs/add': {'rule': {**self.rule, 'name': f'k{tag}-add'}, 'scheduler': 's'},
            '/v1/jobs/trigger': self.job('trigger'), '/v1/jobs/pause': self.job('pause'), '/v1/jobs/resume': self.job('resume', paused=True),
            '/v1/once/start': self.once('start', False), '/v1/once/end': self.once('end', True),
        }.items()


def keyed_paths(client):
    """Where the document says that an idempotency key may stand."""
    paths = client.get('/v1/openapi.json').json['paths']
    return {path for path, item in paths.items()
            if any(one['name'] == 'Idempotency-Key' for one in item.get('post', {}).get('parameters', []))}


def lasting(answer, path=''):
    """The answer but for what tells of the moment; of a claim, what is left of it is of the moment too."""
    out = {name: value for name, value in answer.json.items() if name not in OF_THE_MOMENT}
    out.pop('hint', None)
    # Counted back from what the store says is left, so that it may be a millisecond off.
    out.pop('renewed_at_ms', None)
    if path == '/v1/queues/claim':
        out.pop('granted_ttl_ms')
        out['item'] = {name: value for name, value in out['item'].items() if name != 'remaining_ms'}
    return out


class Kept(TestCase):
    def same_again(self, client, path, body, first, key=None):
        again = client.post(path, body, headers={'Idempotency-Key': key or path})
        self.assertEqual(again.status, 200, (path, again))
        self.assertEqual(lasting(again, path), lasting(first, path), path)
        self.assertTrue(again.json.get('replayed'), (path, again))
        self.assertGreaterEqual(again.json['age_ms'], 0, path)

    def every_path(self, **how):
        with Server(**how) as server:
            allow = ALL.split(',')
            keys = [server.client().post('/v1/keys', {'name': 'one', 'allow': allow}).json['secret']]
            c = server.client(keys[0])
            keys.append(c.post('/v1/keys', {'name': 'two', 'allow': allow}).json['secret'])
            asked = dict(Asks(c).bodies())
            self.assertEqual(set(asked), keyed_paths(c))
            first = {}
            for path, body in asked.items():
                first[path] = c.post(path, body, headers={'Idempotency-Key': path})
                self.assertEqual(first[path].status, 200, (path, first[path]))
                self.assertFalse(first[path].json.get('replayed'), path)
            server.kill()
            server.start()
            c, other = server.client(keys[0]), server.client(keys[1])
            # What was done stands once, however often it is asked for.
            before = c.get('/v1/events?limit=1000').json['events']
            for path, body in asked.items():
                self.same_again(c, path, body, first[path])
                # The same in other bytes is another body.
                wrong = c.call('POST', path, raw=json.dumps(body) + ' ', headers={'Idempotency-Key': path})
                self.assertEqual((wrong.status, wrong.code), (422, 'invalid'), path)
                self.same_again(c, path, body, first[path])
            told = lambda events: [one for one in events if 'refused' not in one['kind']]
            self.assertEqual(told(c.get('/v1/events?limit=1000').json['events']), told(before))
            for path, body in asked.items():
                self.assertNotIn('age_ms', other.post(path, body, headers={'Idempotency-Key': path}).json, path)
            print(f'{len(asked)} paths: the same answer after kill -9')

    # EVIDENCE-OF: G11
    def test_every_path_gives_the_same_answer_after_kill_9(self):
        self.every_path()

    # EVIDENCE-OF: G11
    def test_every_path_gives_the_same_answer_after_kill_9_on_a_log_store(self):
        self.every_path(store='log:DIR/log')

    # EVIDENCE-OF: G5
    def test_a_replayed_yes_says_so_and_is_no_leave(self):
        with Server() as server:
            c = server.client()
            asks = Asks(c)
            offer = asks.offer('r')
            body = {'offer': offer, 'target': 't'}
            key = {'Idempotency-Key': 'admit'}
            first = c.post('/v1/fences/admit', body, headers=key)
            self.assertEqual(first.json['verdict'], 'admitted')
            c.post('/v1/revoke', {'resource': offer['resource'], 'token': offer['token'], 'why': 'w', 'by': 'b'})
            self.assertEqual(c.post('/v1/fences/seal', {'target': 't', 'offer': asks.offer('r')}).status, 200)
            again = c.post('/v1/fences/admit', body, headers=key)
            self.assertEqual((again.status, again.json['verdict'], again.json['replayed']), (200, 'admitted', True))
            # Asked anew it is what it is now.
            self.assertEqual(c.post('/v1/fences/admit', body).status, 412)
            self.assertEqual(c.post('/v1/fences/admit', body, headers={'Idempotency-Key': 'new'}).status, 412)
            # The refusal is not kept, and the fence is where it was.
            self.assertEqual(c.get('/v1/fences?target=t').json['fence']['token'], offer['token'] + 2)

    def test_our_client_takes_no_old_yes_for_a_leave(self):
        """Something in between gives the requests to fences a key, made of their bodies: an old answer comes back."""
        def keyed(path, body):
            return {'Idempotency-Key': hashlib.sha256(body).hexdigest()} if path.startswith('/v1/fences/') and body else {}
        with Server() as server, LosesOneAnswer(server.port, '', lambda: None, more=keyed) as relay:
            token = server.stint('acquire', 'r').stdout.strip()
            words = ('seal', f'file:{server.dir}/target', '--resource', 'r', '--token', token)
            self.assertEqual(server.stint(*words, store=relay.url, check=False).returncode, 0)
            again = server.stint(*words, store=relay.url, check=False)
            self.assertEqual(again.returncode, 14, again.stderr)
            self.assertIn('an earlier request', again.stderr)
            # Without it the same is done.
            self.assertEqual(server.stint(*words, check=False).returncode, 0)

    def test_the_same_request_at_once_is_done_once(self):
        with Server() as server:
            key = server.key('all', ALL)
            c = server.client(key)
            until(lambda: c.get('/v1/store').json.get('key') == 'all', 'the key is known')
            for path, body in dict(Asks(c).bodies()).items():
                got = []

                def ask(_):
                    got.append(server.client(key).post(path, body, headers={'Idempotency-Key': path}))
                in_threads(8, ask)
                self.assertEqual({one.status for one in got}, {200}, (path, got))
                self.assertEqual(sum(not one.json.get('replayed') for one in got), 1, (path, got))
                for one in got:
                    self.assertEqual(lasting(one, path), lasting(got[0], path), path)

    def test_a_put_whose_unique_key_was_taken_is_answered_the_same(self):
        with Server() as server:
            c = server.client()
            put = {'queue': 'q', 'payload': 'p', 'unique': 'u', 'create': True}
            other = c.post('/v1/queues/put', put).json['id']
            first = c.post('/v1/queues/put', put, headers={'Idempotency-Key': 'p'})
            self.assertEqual((first.json['existed'], first.json['id']), (True, other))
            self.assertEqual(c.post('/v1/queues/drop', {'id': other, 'why': 'w', 'by': 'b'}).status, 200)
            self.same_again(c, '/v1/queues/put', put, first, key='p')
            self.assertEqual(c.get('/v1/queues/items?queue=q').json['items'], [])

    def test_what_stood_already_is_answered_the_same(self):
        """An answer that changes nothing is one all the same: another has the lease by the time it is asked for again."""
        with Server() as server:
            c = server.client()
            grip = Asks(c).lease('ended')
            self.assertEqual(c.post('/v1/release', grip).status, 200)
            ended = c.post('/v1/release', grip, headers={'Idempotency-Key': 'ended'})
            bid = {'resource': 'k/had', 'owner': 'o', 'claim': claim(), 'ttl_ms': 600_000}
            self.assertEqual(c.post('/v1/acquire', bid).status, 200)
            had = c.post('/v1/acquire', bid, headers={'Idempotency-Key': 'had'})
            self.assertEqual((ended.status, had.status), (200, 200), (ended, had))
            c.post('/v1/revoke', {'resource': 'k/had', 'token': had.json['token'], 'why': 'w', 'by': 'b'})
            for name in (grip['resource'], 'k/had'):
                self.assertEqual(c.acquire(name, owner='bob').status, 200)
            self.same_again(c, '/v1/release', grip, ended, key='ended')
            self.same_again(c, '/v1/acquire', bid, had, key='had')
            for path, body, key in (('/v1/release', grip, 'ended'), ('/v1/acquire', bid, 'had')):
                wrong = c.call('POST', path, raw=json.dumps(body) + ' ', headers={'Idempotency-Key': key})
                self.assertEqual(wrong.status, 422, path)

    def test_under_the_key_of_a_list_no_other_list_is_taken(self):
        with Server() as server:
            c, key = server.client(), {'Idempotency-Key': 'list'}

            def ask(body, **more):
                return c.post('/v1/acquire', {'owner': 'o', 'ttl_ms': 600_000, **body}, headers=key, **more)
            first = ask({'resources': ['k/a', 'k/b']})
            self.assertEqual(first.status, 200, first)
            for other in ({'resources': ['k/c', 'k/d']}, {'resource': 'k/c'}, {'resource': 'k/a'}, {'resources': ['k/a']}):
                self.assertEqual(ask(other).status, 422, other)
            self.assertEqual([one['resource'] for one in c.get('/v1/leases').json['leases']], ['k/a', 'k/b'])
            again = ask({'resources': ['k/a', 'k/b']})
            self.assertEqual([one['token'] for one in again.json['leases']], [one['token'] for one in first.json['leases']])
            self.assertTrue(all(one['replayed'] for one in again.json['leases']), again)
            # The other way round; and what was refused has not used its key.
            key = {'Idempotency-Key': 'one'}
            self.assertEqual(ask({'resources': ['k/a', 'k/e']}).status, 409)
            self.assertEqual(ask({'resource': 'k/e'}).status, 200)
            self.assertEqual(ask({'resources': ['k/f', 'k/g']}).status, 422)

    def test_a_new_keys_secret_comes_again_and_is_not_in_the_store(self):
        with Server() as server:
            admin = server.client(server.key('admin', 'admin,read'))
            until(lambda: admin.get('/v1/store').json.get('key') == 'admin', 'the key is known')
            body, key = {'name': 'new', 'allow': ['read']}, {'Idempotency-Key': 'easy to guess'}
            first = admin.post('/v1/keys', body, headers=key).json
            server.kill()
            secret = first['secret'].split('_')[2]
            whole = b''
            for name in ('store.db', 'store.db-wal'):
                with open(f'{server.dir}/{name}', 'rb') as file:
                    whole += file.read()
            self.assertIn(first['id'].encode(), whole)
            self.assertNotIn(secret.encode(), whole)
            self.assertNotIn(bytes.fromhex(secret), whole)
            server.start()
            admin = server.client(admin.key)
            again = admin.post('/v1/keys', body, headers=key).json
            self.assertEqual((again['secret'], again['replayed']), (first['secret'], True))
            self.assertEqual(server.client(again['secret']).get('/v1/store').json['key'], 'new')
            self.assertEqual(len([one for one in admin.get('/v1/keys').json['keys'] if one['name'] == 'new']), 1)

    def test_the_first_key_of_all_is_told_once(self):
        with Server() as server:
            c = server.client()
            body, key = {'name': 'new', 'allow': ['read']}, {'Idempotency-Key': 'first'}
            self.assertEqual(c.post('/v1/keys', body, headers=key).status, 200)
            self.assertEqual(until(lambda: c.post('/v1/keys', body, headers=key).status in (401, 403), 'refused'), True)

    def test_two_limited_admins_cannot_make_one_name_twice(self):
        with Server() as server:
            admin = server.client(server.key('root', ALL))
            until(lambda: admin.get('/v1/store').json.get('key') == 'root', 'the key is known')
            made = [admin.post('/v1/keys', {'name': f'a{i}', 'allow': ['admin', 'read'], 'prefixes': [f'team-{i}/']}).json['secret'] for i in range(6)]
            for turn in range(5):
                got = []

                def make(i):
                    body = {'name': f'both{turn}', 'allow': ['read'], 'prefixes': [f'team-{i}/x']}
                    got.append(server.client(made[i]).post('/v1/keys', body).status)
                in_threads(6, make)
                self.assertEqual(sorted(got), [200] + [403] * 5)


if __name__ == '__main__':
    main()
