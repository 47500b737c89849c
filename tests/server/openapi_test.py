"""The document at /v1/openapi.json against what the server really does: every answer that it describes occurs, as it
describes it, and no other does."""
import json
import socket

from databases import Redis
from document import Document
from harness import Answer, Client, RedisRelay, Server, TestCase, claim, in_threads, main, raw, until
from kept_test import ALL, Asks


class OpenApi(TestCase):
    def ask(self, client, method, path, body=None, query='', **more):
        answer = client.call(method, path + query, body, **more)
        self.document.take(method, path, body, answer)
        return answer

    def stream(self, path, query, headers):
        """The head of an answer that does not end."""
        with socket.create_connection(('127.0.0.1', self.server.port), timeout=60) as sock:
            lines = ''.join(f'{k}: {v}\r\n' for k, v in headers.items())
            sock.sendall(f'GET {path}{query} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n'.encode())
            got = b''
            while b'\r\n\r\n' not in got:
                got += sock.recv(4096)
        self.assertIn(b'200 OK', got)
        self.assertIn(b'text/event-stream', got)
        self.document.seen.add(('GET', path, '200'))

    def verbs(self, c):
        post = lambda path, body, **more: self.ask(c, 'POST', path, body, **more)
        get = lambda path, query='': self.ask(c, 'GET', path, query=query)
        bid = {'resource': 'o/a', 'owner': 'o', 'claim': claim(), 'ttl_ms': 60_000}
        granted = post('/v1/acquire', bid, headers={'Idempotency-Key': 'a'}).json
        post('/v1/acquire', {'resources': ['o/x', 'o/y'], 'owner': 'o', 'ttl_ms': 9000})
        post('/v1/acquire', {**bid, 'claim': claim()})
        post('/v1/acquire', {**bid, 'note': 'n'}, headers={'Idempotency-Key': 'a'})
        hold = {'resource': 'o/a', 'token': granted['token'], 'claim': bid['claim']}
        post('/v1/renew', {**hold, 'ttl_ms': 9000})
        post('/v1/renew', {'leases': [hold, {**hold, 'resource': 'o/none'}], 'ttl_ms': 9000})
        post('/v1/check', hold)
        post('/v1/progress', {**hold, 'marker': 'm'}, headers={'Idempotency-Key': 'p'})
        offer = {'resource': 'o/a', 'token': granted['token'], 'generation': granted['generation']}
        fences = lambda verb, o, **more: post(f'/v1/fences/{verb}', {**more, 'offer': o})
        once = {**offer, 'mode': 'once', 'key': 'k', 'digest': 'd'}
        act = {'name': 'n', 'key': 'k', 'owner': 'o'}
        fences('remember', offer, targets=['file:/t'])
        for verb in ('seal', 'admit'):
            fences(verb, offer, target='t')
        fences('admit', once, target='t1')
        fences('admit', {**once, 'digest': 'e'}, target='t1')
        fences('begin', offer, act=act)
        fences('finish', offer, act={**act, 'exit_code': 0, 'digest': 'd', 'ended_at_ms': 1})
        for key in ('k4', 'k5'):
            fences('begin', {**once, 'key': key}, act={**act, 'name': 'once', 'key': key})
        get('/v1/fences', '?target=t')
        get('/v1/fences', '?target=none')
        get('/v1/fences/act', '?name=n&key=k')
        get('/v1/fences/word', '?resource=o/a')
        get('/v1/fences/sealed', '?resource=o/a')
        post('/v1/fences/forget', {'resource': 'o/a', 'target': 'file:/t'})
        order = {'resource': 'o/a', 'token': granted['token'], 'why': 'w', 'by': 'b'}
        post('/v1/transfer', {**order, 'to': 'heir'}, headers={'Idempotency-Key': 't'})
        post('/v1/transfer', {**order, 'to': 'heir'})
        post('/v1/forget', {'resource': 'o/a'})
        post('/v1/revoke', order)
        post('/v1/revoke', {**order, 'token': granted['token'] + 1}, headers={'Idempotency-Key': 'r'})
        for verb in ('renew', 'check', 'progress', 'release', 'stall'):
            more = {'renew': {'ttl_ms': 9000}, 'progress': {'marker': 'm'}}.get(verb, {})
            post(f'/v1/{verb}', {**hold, **more})
        # The token has moved on: what is older is stale, none is refused too.
        none = {**offer, 'token': 0}
        new = self.ask(c, 'POST', '/v1/acquire', {**bid, 'claim': claim()}).json
        fences('seal', {**offer, 'token': new['token']}, target='t')
        fences('begin', {**offer, 'token': new['token']}, act={**act, 'key': 'k2'})
        for o in (offer, none):
            for verb in ('seal', 'admit'):
                fences(verb, o, target='t')
            fences('begin', o, act={**act, 'key': 'k3'})
            fences('finish', o, act={**act, 'exit_code': 0, 'ended_at_ms': 1})
            fences('remember', o, targets=['file:/t'])
        for name, verb in (('o/rel', 'release'), ('o/st', 'stall')):
            mine = {**bid, 'resource': name, 'claim': claim()}
            token = post('/v1/acquire', mine).json['token']
            post(f'/v1/{verb}', {'resource': name, 'token': token, 'claim': mine['claim']}, headers={'Idempotency-Key': verb})
            for other in ('release', 'stall', 'progress'):
                # Used for another request.
                post(f'/v1/{other}', {'resource': name, 'token': 1, 'claim': mine['claim'], **({'marker': 'm'} if other == 'progress' else {})},
                     headers={'Idempotency-Key': 'a'})
        for verb in ('transfer', 'revoke'):
            post(f'/v1/{verb}', {**order, **({'to': 'h'} if verb == 'transfer' else {})}, headers={'Idempotency-Key': 'a'})
        post('/v1/forget', {'resource': 'o/rel'})
        post('/v1/events', {'event': {'at_ms': 1, 'kind': 'note', 'resource': 'o/a', 'owner': 'o'}})

    def queues(self, c):
        post = lambda verb, body, key=None: self.ask(c, 'POST', f'/v1/queues/{verb}', body,
                                                     headers={'Idempotency-Key': key} if key else None)
        get = lambda path, query='': self.ask(c, 'GET', path, query=query)
        post('configure', {'queue': 'o-q', 'limits': {'max_attempts': 9, 'requeue': 'always'}}, 'q-conf')
        put = {'queue': 'o-q', 'payload': 'p', 'labels': ['l'], 'by': 'x'}
        first = post('put', put, 'q-put').json
        self.assertEqual(post('put', put, 'q-put').json['id'], first['id'])
        self.assertEqual(post('put', {**put, 'payload': 'q'}, 'q-put').status, 422)
        claimed = post('claim', {'queue': 'o-q', 'owner': 'w', 'ttl_ms': 60_000}, 'q-claim').json
        again = post('claim', {'queue': 'o-q', 'owner': 'w', 'ttl_ms': 60_000}, 'q-claim').json
        self.assertTrue(again['replayed'])
        self.assertEqual(again['item']['id'], claimed['item']['id'])
        self.assertGreater(again['granted_ttl_ms'], 0)
        self.assertEqual(post('claim', {'queue': 'o-q', 'owner': 'v'}, 'q-claim').status, 422)
        self.assertIsNone(post('claim', {'queue': 'o-q', 'owner': 'w'}).json['item'])
        ref = {'id': first['id'], 'epoch': claimed['item']['epoch']}
        post('start', {**ref, 'reports': True}, 'q-start')
        post('renew', {**ref, 'ttl_ms': 60_000})
        post('checkpoint', {**ref, 'marker': 'm', 'data': 'd'}, 'q-check')
        get('/v1/queues')
        get('/v1/queues/queue', '?queue=o-q')
        get('/v1/queues/items', '?queue=o-q&limit=1&state=claimed')
        get('/v1/queues/item', f'?id={first["id"]}')
        self.assertEqual(post('complete', {**ref, 'result': 'x'}, 'q-put').status, 422)
        for used in ('q-put', 'q-claim', 'q-check', 'q-conf'):
            taken = self.ask(c, 'POST', '/v1/acquire', {'resource': 'o/used', 'owner': 'o', 'ttl_ms': 1000},
                             headers={'Idempotency-Key': used})
            self.assertEqual(taken.status, 422, used)
        done = {**ref, 'result': 'r', 'then': [{'queue': 'o-q', 'payload': 'next'}]}
        followed = post('complete', done, 'q-done').json['follow_ups']
        self.assertEqual(len(followed), 1)
        self.assertEqual(post('complete', done, 'q-done').json['follow_ups'], followed)
        for verb in ('fail', 'release'):
            other = post('put', put).json['id']
            while True:
                mine = post('claim', {'queue': 'o-q', 'owner': 'w'}).json['item']
                if mine['id'] == other:
                    break
            post(verb, {'id': other, 'epoch': mine['epoch'], **({'why': 'w', 'later_ms': 60_000} if verb == 'fail' else {})}, f'q-{verb}')
        for verb in ('start', 'renew', 'checkpoint', 'complete', 'fail', 'release'):
            self.assertEqual(post(verb, {'id': first['id'], 'epoch': 99}).status, 410)
        one = post('put', put).json['id']
        order = {'id': one, 'why': 'w', 'by': 'b'}
        for verb in ('park', 'requeue', 'reassign', 'cancel', 'replay', 'drop'):
            wrong = {**order, 'epoch': 999} if verb != 'replay' else {**order, 'id': followed[0], 'epoch': 999}
            self.assertEqual(post(verb, wrong).status, 410)
            self.assertEqual(post(verb, {**order, **({'to': 'heir', 'hold_ms': 1000} if verb == 'reassign' else {})}, f'q-{verb}').status, 200, verb)
        self.assertEqual(get('/v1/queues/item', f'?id={one}').status, 410)
        post('tend', {'queue': 'o-q'})
        self.stream('/v1/queues/watch', '?queue=o-q', {'Authorization': f'Bearer {c.key}'})

    def jobs(self, c):
        post = lambda verb, body: self.ask(c, 'POST', f'/v1/jobs/{verb}', body)
        get = lambda path, query='': self.ask(c, 'GET', path, query=query)
        now = get('/v1/jobs/now').json['now_ms']
        rule = {'name': 'o-job', 'schedule': '0 0 1 1 *', 'loaded_at_ms': now}
        self.assertEqual(post('decide', {'scheduler': 's', 'asks': [{'rule': rule}]}).json['results'][0]['job']['schedule'], rule['schedule'])
        mine = {'resource': 'o-job', 'owner': 'o', 'claim': claim(), 'ttl_ms': 60_000}
        token = self.ask(c, 'POST', '/v1/acquire', mine).json['token']

        def due():
            at = post('add', {'rule': rule, 'scheduler': 's'}).json
            self.assertEqual(at['what'], 'added')
            return {'job': 'o-job', 'at_ms': at['at_ms'], 'scheduler': 's', 'owner': 'o', 'resource': 'o-job', 'token': token,
                    'claim': mine['claim']}
        slot = due()
        end = {'state': 'ran', 'exit_code': 0, 'rule': rule}
        for verb, more in (('claim', {}), ('start', {}), ('running', {}), ('end', end)):
            self.assertEqual(post(verb, {**slot, **more}).status, 200, verb)
        for verb, more in (('claim', {}), ('start', {}), ('running', {}), ('hand_back', {}), ('end', end)):
            self.assertEqual(post(verb, {**slot, 'at_ms': 1, **more}).status, 410, verb)
        until(lambda: get('/v1/jobs/now').json['now_ms'] > slot['at_ms'], 'the next millisecond')
        slot = due()
        post('claim', slot)
        self.assertEqual(post('hand_back', slot).status, 200)
        until(lambda: get('/v1/jobs/now').json['now_ms'] > slot['at_ms'], 'the next millisecond')
        skip = {'job': 'o-job', 'at_ms': due()['at_ms'], 'scheduler': 's', 'state': 'skipped_held'}
        self.assertEqual(post('skip', skip).status, 200)
        self.assertEqual(post('skip', skip).status, 410)
        post('keep', {'job': 'o-job'})
        post('keep', {'job': 'o-nobody'})  # of nobody
        post('pause', {'job': 'o-job', 'by': 'b'})
        row = next(one for one in get('/v1/jobs').json['jobs'] if one['job'] == 'o-job')
        self.assertTrue(row['paused'])
        self.assertGreater(row['next_at_ms'], now)
        post('resume', {'job': 'o-job'})
        post('trigger', {'job': 'o-job'})
        self.assertIn('o-job', get('/v1/jobs/open').json['jobs'])
        states = [one['state'] for one in get('/v1/jobs/slots', '?job=o-job&limit=10').json['slots']]
        self.assertIn('ran', states)
        get('/v1/jobs/history', '?job=o-job')
        self.explain(c, now)
        self.stream('/v1/jobs/watch', '', {'Authorization': f'Bearer {c.key}'})
        hold = {'resource': 'once/o', 'owner': 'o', 'claim': claim(), 'ttl_ms': 60_000}
        token = self.ask(c, 'POST', '/v1/acquire', hold).json['token']
        grip = {'key': 'o', 'resource': 'once/o', 'token': token, 'claim': hold['claim']}
        for wanted in (200, 410):
            self.assertEqual(self.ask(c, 'POST', '/v1/once/start', {**grip, 'owner': 'o'}).status, wanted)
            self.assertEqual(self.ask(c, 'POST', '/v1/once/end', {**grip, 'exit_code': 0, **({} if wanted == 200 else {'token': token + 9})}).status, wanted)
        self.assertEqual(get('/v1/once', '?key=o').json['state'], 'done')

    def explain(self, c, now):
        """What 'stint explain' tells, by the rule that a scheduler wrote down."""
        ask = lambda **query: self.ask(c, 'GET', '/v1/jobs/explain', query='?' + '&'.join(f'{k}={v}' for k, v in query.items()))
        rule = {'name': 'o-told', 'schedule': '*/10 * * * *', 'loaded_at_ms': now, 'max_backfill': 2, 'start_deadline_ms': 3_600_000}
        self.ask(c, 'POST', '/v1/jobs/decide', {'scheduler': 's', 'asks': [{'rule': rule}]})
        noon = now - now % 86_400_000 + 43_200_000
        told = ask(job='o-told', from_ms=noon + 1000, to_ms=noon + 2 * 3_600_000 + 61_000).json
        self.assertEqual((told['would_run'], told['would_skip'], told['max_backfill'], told['supposed']), (2, 10, 2, False))
        self.assertEqual([one['state'] for one in told['slots']], ['skipped_late'] * 6 + ['skipped_stale'] * 4 + ['runs'] * 2)
        short = ask(job='o-told', from_ms=noon + 1000, to_ms=noon + 2 * 3_600_000 + 61_000, limit=3).json
        self.assertEqual((len(short['slots']), short['left_out'], short['would_skip']), (3, 9, 10))
        self.assertEqual(ask(job='o-told', from_ms=noon + 1000, to_ms=noon + 2000).json['slots'], [])
        # A year of it costs nothing.
        self.assertEqual(ask(job='o-told', from_ms=noon - 31_536_000_000, to_ms=noon + 1000).json['would_run'], 2)
        for wrong in ({'from_ms': 5, 'to_ms': 4}, {'from_ms': 'x', 'to_ms': 4}, {'from_ms': 1, 'to_ms': 10**18}, {'from_ms': 1, 'to_ms': 2, 'limit': 0}):
            self.assertEqual(ask(job='o-told', **wrong).status, 400, wrong)
        self.assertEqual(ask(job='o-none', from_ms=1, to_ms=2).status, 400)
        self.ask(c, 'POST', '/v1/jobs/pause', {'job': 'o-told'})
        paused = ask(job='o-told', from_ms=noon + 1000, to_ms=noon + 3_600_000 + 1000).json
        self.assertEqual((paused['paused'], {one['state'] for one in paused['slots']}), (True, {'skipped_paused'}))

    def required(self):
        """What a request needs is in its schema: who keeps to it is not refused for a field that is missing."""
        schemas = self.document.whole['components']['schemas']
        grip = {'resource': 'r', 'token': 1, 'claim': '0' * 32}
        order = {'resource': 'r', 'token': 1, 'why': 'w', 'by': 'b'}
        for name, body, fits in (('AcquireRequest', {'resource': 'r', 'ttl_ms': 1}, True),
                                 ('AcquireRequest', {'resources': ['r'], 'ttl_ms': 1}, True),
                                 ('AcquireRequest', {'ttl_ms': 1}, False),
                                 ('AcquireRequest', {'resource': 'r', 'resources': ['r'], 'ttl_ms': 1}, False),
                                 ('RenewRequest', {**grip, 'ttl_ms': 1}, True), ('RenewRequest', grip, False),
                                 ('RenewRequest', {'leases': [grip], 'ttl_ms': 1}, True),
                                 ('TransferRequest', {**order, 'to': 'o'}, True), ('TransferRequest', order, False)):
            self.assertEqual(not self.document.wrong(schemas[name], body), fits, (name, body))
        self.assertIn('Required where no key', schemas['AcquireRequest']['properties']['owner']['description'])

    def doctor(self, c):
        """One examination, however often it is asked for; it leaves nothing behind and touches no lease."""
        before = c.get('/v1/leases?limit=1000').json
        self.assertEqual(self.ask(c, 'GET', '/v1/doctor').json, {'running': False, 'findings': []})
        self.assertEqual(c.call('HEAD', '/v1/doctor').status, 200)
        self.assertNotIn('began_at_ms', self.ask(c, 'GET', '/v1/doctor').json)
        # What is found is of the whole store: a key for a part of it neither reads nor begins one.
        for allow, prefixes, may in (('operate', ['team-a/'], 403), ('read', [], 403), ('operate', [], 200), ('admin', ['team-a/'], 200)):
            name = f'doctor-{allow}-{len(prefixes)}'
            made = self.ask(c, 'POST', '/v1/keys', {'name': name, 'allow': [allow], 'prefixes': prefixes}).json
            other = self.server.client(made['secret'])
            until(lambda: other.get('/v1/store').json.get('key') == name, 'the key is known')
            self.assertEqual(self.ask(other, 'GET', '/v1/doctor').status, may, (allow, prefixes))
            if may == 403:
                self.assertEqual(self.ask(other, 'POST', '/v1/doctor', {}).status, 403, (allow, prefixes))
        self.assertNotIn('began_at_ms', self.ask(c, 'GET', '/v1/doctor').json)
        self.assertEqual(self.ask(c, 'POST', '/v1/doctor', {'deep': True}).status, 400)
        first = self.ask(c, 'POST', '/v1/doctor', {}).json
        self.assertTrue(first['running'])

        def done():
            seen = self.ask(c, 'GET', '/v1/doctor').json
            self.assertEqual(seen['began_at_ms'], first['began_at_ms'])
            return None if seen['running'] else seen
        seen = until(done, 'the examination ends')
        self.assertNotIn('fault', seen)
        levels = {one['check']: one['level'] for one in seen['findings']}
        for check in ('durability', 'whole', 'visible', 'atomic', 'clock', 'timers', 'wake-up', 'round-trip', 'generation'):
            self.assertIn(check, levels)
        for check in ('whole', 'visible', 'atomic'):
            self.assertEqual(levels[check], 'ok', seen)
        self.assertEqual(self.ask(c, 'GET', '/v1/doctor').json, seen)
        self.assertEqual(self.ask(c, 'POST', '/v1/doctor', {}).json, seen)
        names = lambda page: [(one['resource'], one['token']) for one in page['leases']]  # some run out meanwhile
        self.assertEqual(names(c.get('/v1/leases?limit=1000').json), names(before))

    def used_keys(self, c):
        """A key that was used for another request, at every path that binds one."""
        for (method, path), operation in self.document.operations.items():
            if '422' in operation['responses'] and (method, path, '422') not in self.document.seen:
                answer = self.ask(c, method, path, {'nonsense': 1}, headers={'Idempotency-Key': 'a'})
                self.assertEqual(answer.status, 422, path)

    def looks(self, c):
        for path, query in (('/v1/lease', '?resource=o/a'), ('/v1/leases', '?limit=1'), ('/v1/history', '?resource=o/a'),
                            ('/v1/tune', '?resource=o/a'), ('/v1/waiters', ''),
                            ('/v1/events', ''), ('/v1/store', ''), ('/v1/keys', ''), ('/metrics', ''), ('/healthz', ''),
                            ('/readyz', ''), ('/v1/openapi.json', '')):
            self.ask(c, 'GET', path, query=query)
        self.stream('/v1/watch', '?resource=o/a', {'Authorization': f'Bearer {c.key}'})
        self.stream('/v1/events', '', {'Authorization': f'Bearer {c.key}', 'Accept': 'text/event-stream'})
        made = self.ask(c, 'POST', '/v1/keys', {'name': 'made', 'allow': ['read'], 'expires_in_ms': 1000}).json
        self.ask(c, 'POST', '/v1/keys/revoke', {'key': made['id']})
        kept = {'name': 'kept', 'allow': ['read']}
        self.assertIn('secret', self.ask(c, 'POST', '/v1/keys', kept, headers={'Idempotency-Key': 'k-kept'}).json)
        twice = self.ask(c, 'POST', '/v1/keys', kept, headers={'Idempotency-Key': 'k-kept'}).json
        self.assertTrue(twice['replayed'])

    def every(self, client, status, query=''):
        """Each operation that describes the status gives it to this client."""
        for (method, path), operation in self.document.operations.items():
            anybodys = status == 403 and path == '/v1/store'  # by a page of another place alone
            if str(status) in operation['responses'] and operation.get('security') != [] and not anybodys:
                needed = [p['name'] for p in operation.get('parameters', []) if p.get('required')]
                asked = query or ('?' + '&'.join(f'{name}=x' for name in needed) if needed else '')
                for one in client if isinstance(client, list) else [client]:
                    answer = self.ask(one, method, path, None if method == 'GET' else {'nonsense': 1}, query=asked)
                    if answer.status == status:
                        break
                self.assertEqual(answer.status, status, (method, path))

    def take_raw(self, method, path, got, status):
        """What came back for bytes as they were sent."""
        head, _, body = got.partition(b'\r\n\r\n')
        lines = head.decode().split('\r\n')
        headers = dict((line.split(': ', 1)[0].lower(), line.split(': ', 1)[1]) for line in lines[1:])
        answer = Answer(int(lines[0].split(' ')[1]), headers, body)
        self.assertEqual(answer.status, status, (method, path, got[:200]))
        self.document.take(method, path, None, answer)

    def framing(self):
        """What the server takes no request for, at every operation."""
        with Server('--header-timeout', '1s', '--body-timeout', '1s') as self.server:
            port, operations = self.server.port, list(self.document.operations)
            for method, path in operations:
                head = f'{method} {path} HTTP/1.1\r\nHost: localhost\r\n'
                self.take_raw(method, path, raw(port, f'{head}Content-Length: 1\r\nContent-Length: 2\r\n\r\n'.encode()), 400)
                self.take_raw(method, path, raw(port, f'{head}Content-Length: 999999999\r\n\r\n'.encode()), 413)
                self.take_raw(method, path, raw(port, f'{head}X: {"x" * 20_000}\r\n\r\n'.encode()), 431)
                other = self.server.client().call('PUT', path, {})
                self.assertEqual(sorted(other.headers['allow'].replace(' ', '').split(',')),
                                 sorted(m for m, p in operations if p == path), path)
                self.assertEqual(other.status, 405)
                self.document.take(method, path, None, other)

            def late(i):
                method, path = operations[i]
                self.take_raw(method, path, raw(port, f'{method} {path} HTTP/1.1\r\nHo'.encode(), end=False), 408)
            in_threads(len(operations), late)
            # The body, too.
            got = raw(port, b'POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{', end=False)
            self.take_raw('POST', '/v1/check', got, 408)
            # Where no key is asked for, a page of another place is refused.
            for method, path in operations:
                if '403' in self.document.operations[(method, path)]['responses']:
                    answer = self.server.client().call(method, path, None if method == 'GET' else {}, headers={'Origin': 'http://elsewhere'})
                    self.assertEqual(answer.status, 403, path)
                    self.document.take(method, path, None, answer)

    def lost_commits(self):
        """Commits that are sent and not answered; then a store that is away."""
        database = Redis()
        self.addCleanup(database.close)
        with RedisRelay(database.port) as relay, Server(store=relay.url + '?timeout=1s') as self.server:
            c = self.server.client(self.server.key('all', ALL))
            until(lambda: c.get('/v1/store').json.get('key') == 'all', 'the key is known')
            asks = Asks(c)
            bodies = dict(asks.bodies())
            held = asks.lease('renew')
            item = asks.item('renew')
            bodies.update({'/v1/renew': {**held, 'ttl_ms': 700_000}, '/v1/queues/renew': {**item, 'ttl_ms': 700_000}, '/v1/check': held})
            queries = {'resource': held['resource'], 'queue': 'k-conf', 'id': item['id'], 'job': 'k-add', 'target': 't', 'name': 'n',
                       'key': 'k', 'from_ms': '1', 'to_ms': '2'}
            relay.scripts.clear()
            asks.post('/v1/queues/configure', {'queue': 'k-one-commit', 'limits': {}})
            asks.post('/v1/queues/put', {'queue': 'k-late', 'payload': 'p', 'create': True})
            late = asks.post('/v1/queues/claim', {'queue': 'k-late', 'owner': 'w', 'ttl_ms': 2000})['item']['id']
            bodies['/v1/queues/tend'] = {'queue': 'k-late'}
            # The janitor's looks are scripts, too; the first that names this queue is the commit that made it.
            relay.dropped = next(script for script, sent in relay.scripts if b'k-one-commit' in sent)
            until(lambda: 'remaining_ms' not in c.get(f'/v1/queues/item?id={late}').json or
                  not c.get(f'/v1/queues/item?id={late}').json['remaining_ms'], 'its claim ran out')
            for (method, path), operation in self.document.operations.items():
                if '504' in operation['responses'] and path != '/v1/jobs/decide':
                    # 503: it met a connection that was closed with the commit before.
                    until(lambda: self.ask(c, method, path, bodies[path]).status == 504, f'{path}: nobody knows')
            # Of many decisions each has its own fault; what is not known is whether the answer of all of them was kept.
            relay.about = b'results'
            until(lambda: self.ask(c, 'POST', '/v1/jobs/decide', bodies['/v1/jobs/decide'],
                                   headers={'Idempotency-Key': claim()}).status == 504, 'the kept decisions: nobody knows')
            relay.dropped, relay.down = None, True
            relay.cut()
            # These ask for nothing; or tell of each decision by itself, or that the stream has ended.
            quiet = ('/v1/store', '/v1/doctor', '/v1/waiters', '/metrics', '/v1/jobs/decide', '/healthz', '/v1/openapi.json')
            away = [(method, path) for method, path in self.document.operations if path not in quiet and not path.endswith('/watch')]

            def ask(i):
                method, path = away[i]
                needed = [p['name'] for p in self.document.operations[away[i]].get('parameters', []) if p.get('required')]
                query = '?' + '&'.join(f'{name}={queries[name]}' for name in needed) if needed else ''
                mine = self.server.client(c.key)
                answer = self.ask(mine, method, path, bodies[path] if method == 'POST' else None, query)
                self.assertEqual(answer.status, 503, (path, answer))
            in_threads(len(away), ask)

    def full(self):
        """A server that has as many connections as it takes: whatever the next one wants."""
        with Server('--max-connections', '1') as self.server:
            held = self.server.client()
            self.assertEqual(held.get('/healthz').status, 200)
            for (method, path), operation in self.document.operations.items():
                self.assertIn('503', operation['responses'], (method, path))
                # It is told before it asks.
                self.take_raw(method, path, raw(self.server.port, b'', end=False), 503)

    def full_job(self, c):
        """A job with as many slots waiting as it has room for takes no more."""
        rule = {'name': 'o-full', 'schedule': '0 0 1 1 *', 'loaded_at_ms': 1}
        for path, body in (('/v1/jobs/add', {'rule': rule, 'scheduler': 's'}), ('/v1/jobs/trigger', {'job': 'o-full'})):
            for _ in range(500):
                answer = self.ask(c, 'POST', path, body)
                if answer.status != 200:
                    break
            self.assertEqual((answer.status, answer.code), (500, 'failed'))

    def test_every_described_answer_occurs_and_no_other(self):
        with Server() as self.server:
            c = self.server.client(self.server.key('all', 'read,acquire,admit,queue,schedule,operate,admin'))
            # Neither may do everything.
            weak = [self.server.client(self.server.key(name, allow)) for name, allow in (('admin', 'admin'), ('admit', 'admit'))]
            until(lambda: weak[1].get('/v1/store').json.get('key') == 'admit', 'the keys are known')
            self.document = Document(c.get('/v1/openapi.json').body)
            self.assertEqual(self.document.whole['openapi'], '3.1.0')
            self.verbs(c)
            self.queues(c)
            self.jobs(c)
            self.used_keys(c)
            self.looks(c)
            self.required()
            self.doctor(c)
            self.full_job(c)
            self.every(c, 400, '?nonsense=1')
            self.every(self.server.client(), 401)
            self.every(weak, 403)
        with Server('--rate', '1') as self.server:
            c = self.server.client(self.server.key('all', 'read,acquire,admit,queue,schedule,operate,admin'))
            until(lambda: c.get('/v1/store').status == 429, 'the rate is used up')
            for (method, path), operation in self.document.operations.items():
                if '429' in operation['responses']:
                    def limited():
                        # Wrong all the same, so that a stream never begins.
                        answer = c.call(method, path + '?nonsense=1', None if method == 'GET' else {'nonsense': 1})
                        return answer if answer.status == 429 else None
                    self.document.take(method, path, None, until(limited, f'{path} is limited'))
        self.framing()
        self.full()
        self.lost_commits()
        self.assertEqual(self.document.missing(), [])
        print(f'{len(self.document.seen)} described answers occurred, of {len(self.document.operations)} operations')


if __name__ == '__main__':
    main()
