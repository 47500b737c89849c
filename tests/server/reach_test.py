"""Every route against every right, and against a key of another prefix. The routes are read from the server's own
document: one that this table does not know fails."""
import json

from harness import Server, TestCase, claim, main, until

RIGHTS = ('read', 'acquire', 'admit', 'queue', 'schedule', 'operate', 'admin')
# What no key of another prefix is told: owners, notes, what a fence is bound to, what stands in items and acts.
HIDDEN = ('mark-owner', 'mark-note', 'mark-bound', 'mark-payload', 'mark-key', 'mark-why')
OURS = 'hidden/'
R, Q, J = OURS + 'r', 'hidden-q', OURS + 'j'
STREAMS = ('/v1/watch', '/v1/queues/watch', '/v1/jobs/watch')


class Reach(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()
        cls.root = cls.server.client(cls.server.key('root', ','.join(RIGHTS)))
        cls.key = cls.server.key('evil', ','.join(RIGHTS), '--prefix', 'evil/')
        cls.evil = cls.server.client(cls.key)
        cls.one = {right: cls.server.client(cls.server.key(f'only-{right}', right)) for right in RIGHTS}
        cls.server.key('mark-key', 'read', '--prefix', OURS)
        until(lambda: all(c.get('/v1/store').status == 200 for c in (cls.root, cls.evil, *cls.one.values())), 'the keys are known')
        cls.document = cls.root.get('/v1/openapi.json').json
        cls.hide()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    @classmethod
    def hide(cls):
        """What there is to learn, behind two prefixes that are not the key's."""
        post = cls.root.post
        cls.claim = claim()
        cls.token = post('/v1/acquire', {'resource': R, 'owner': 'mark-owner', 'claim': cls.claim, 'ttl_ms': 600_000,
                                         'note': 'mark-note'}).json['token']
        bound = post('/v1/acquire', {'resource': 'mark-bound', 'owner': 'mark-owner', 'ttl_ms': 600_000}).json
        cls.generation = bound['generation']
        offer = {'resource': 'mark-bound', 'token': bound['token'], 'generation': cls.generation}
        # Also names of the key's own prefix, and of the proxy's, that another resource holds.
        cls.names = ('admit:deploy', 'admit:evil/taken', 'proxy:http://127.0.0.1:9#hidden/r', 'proxy:http://127.0.0.1:9#evil/r',
                     'proxy-passed:http://127.0.0.1:9#hidden/r', 'plain')
        for name in cls.names:
            assert post('/v1/fences/seal', {'target': name, 'offer': offer}).status == 200
        for name in ('deploy', 'evil/taken'):
            act = {'name': name, 'key': 'k', 'owner': 'mark-owner'}
            assert post('/v1/fences/begin', {'act': act, 'offer': offer}).status == 200
            act.update(exit_code=0, digest='mark-payload', ended_at_ms=1)
            assert post('/v1/fences/finish', {'act': act, 'offer': offer}).status == 200
        cls.root.post('/v1/fences/remember', {'targets': ['file:/mark-note'],
                                             'offer': {**offer, 'resource': R, 'token': cls.token}})
        assert post('/v1/queues/configure', {'queue': Q, 'limits': {}}).status == 200
        cls.item = post('/v1/queues/put', {'queue': Q, 'payload': 'mark-payload'}).json['id']
        cls.rule = {'name': J, 'schedule': '0 0 1 1 *', 'loaded_at_ms': post('/v1/jobs/decide', {'scheduler': 's', 'asks': []}).json.get('now_ms', 1)}
        cls.mine = cls.evil.post('/v1/acquire', {'resource': 'evil/r', 'owner': 'o', 'ttl_ms': 600_000}).json
        cls.offer = {'resource': 'evil/r', 'token': cls.mine['token'], 'generation': cls.generation}

    def table(self):
        """(method, path) -> requests of another prefix's things; None: there is nothing in it that has a prefix."""
        hold = {'resource': R, 'token': self.token, 'claim': self.claim, 'owner': 'mark-owner'}
        order = {'resource': R, 'token': self.token, 'why': 'w', 'by': 'b'}
        theirs = {'resource': R, 'token': self.token, 'generation': self.generation}
        ref = {'id': self.item, 'epoch': 1, 'owner': 'o'}
        fence = [{'target': name, 'offer': self.offer} for name in self.names] + [{'target': 'admit:evil/x', 'offer': theirs},
                                                                                 {'target': 'admit:free', 'offer': self.offer}]
        act = [{'act': {'name': name, 'key': 'k', 'owner': 'o'}, 'offer': self.offer} for name in ('deploy', 'evil/taken', 'free')]
        slot = {'job': J, 'at_ms': 0, 'scheduler': 's', 'owner': 'o', 'resource': 'evil/r', 'token': 1, 'claim': self.claim}
        get = {
            '/v1/lease': [f'resource={R}'], '/v1/leases': ['prefix=hidden/', '', 'prefix=evil/'],
            '/v1/history': [f'resource={R}'], '/v1/tune': [f'resource={R}'], '/v1/waiters': [''],
            '/v1/events': ['prefix=hidden/', '', 'limit=1000'], '/v1/watch': [f'resource={R}'], '/v1/store': [''],
            '/v1/doctor': None, '/v1/fences/word': [f'resource={R}'], '/v1/fences/sealed': [f'resource={R}'],
            '/v1/fences': [f'target={name.replace("#", "%23")}' for name in (*self.names, 'admit:free')],
            '/v1/fences/act': ['name=deploy&key=k', 'name=evil/taken&key=k', 'name=free&key=k'], '/v1/keys': [''],
            '/v1/queues': [''], '/v1/queues/queue': [f'queue={Q}'], '/v1/queues/items': [f'queue={Q}'],
            '/v1/queues/item': [f'id={self.item}'], '/v1/queues/watch': [f'queue={Q}', f'id={self.item}'], '/v1/jobs': [''],
            '/v1/jobs/open': [''], '/v1/jobs/now': [''], '/v1/jobs/slots': [f'job={J}'], '/v1/jobs/history': [f'job={J}'],
            '/v1/jobs/explain': [f'job={J}&from_ms=0&to_ms=1'], '/v1/jobs/watch': None, '/v1/once': ['key=hidden/k'],
            '/metrics': [''], '/healthz': [''], '/readyz': [''], '/v1/openapi.json': None,
        }
        post = {
            '/v1/acquire': [{'resource': R, 'owner': 'o', 'ttl_ms': 9000}, {'resources': ['evil/1', R], 'owner': 'o', 'ttl_ms': 9000}],
            '/v1/renew': [{**hold, 'ttl_ms': 9000}], '/v1/release': [hold], '/v1/stall': [hold], '/v1/check': [hold],
            '/v1/progress': [{**hold, 'marker': 'm'}], '/v1/transfer': [{**order, 'to': 'o', 'ttl_ms': 0}],
            '/v1/revoke': [order], '/v1/forget': [{'resource': R}],
            '/v1/events': [{'event': {'at_ms': 1, 'kind': 'note', 'resource': R, 'owner': 'o'}}], '/v1/doctor': None,
            '/v1/fences/remember': [{'targets': ['file:/x'], 'offer': theirs}],
            '/v1/fences/forget': [{'resource': R, 'target': 'file:/mark-note'}], '/v1/fences/admit': fence,
            '/v1/fences/seal': fence + [{'target': name, 'offer': {**self.offer, 'adopt': True, 'by_order': True}} for name in self.names],
            '/v1/fences/begin': act, '/v1/fences/finish': [{**one, 'act': {**one['act'], 'exit_code': 0}} for one in act],
            '/v1/keys': [{'name': 'n', 'allow': ['read'], 'prefixes': [OURS]}, {'name': 'n', 'allow': ['read']}],
            '/v1/keys/revoke': [{'key': 'mark-key'}], '/v1/queues/configure': [{'queue': Q, 'limits': {}}],
            '/v1/queues/put': [{'queue': Q, 'payload': 'x'}], '/v1/queues/claim': [{'queue': Q, 'owner': 'o'}],
            '/v1/queues/tend': [{'queue': Q}], '/v1/jobs/decide': [{'asks': [{'rule': self.rule}], 'scheduler': 's'}],
            '/v1/jobs/keep': [{'job': J}], '/v1/jobs/claim': [slot], '/v1/jobs/start': [slot], '/v1/jobs/running': [slot],
            '/v1/jobs/hand_back': [slot], '/v1/jobs/end': [slot], '/v1/jobs/skip': [slot], '/v1/jobs/add': [{'rule': self.rule, 'scheduler': 's'}],
            '/v1/jobs/trigger': [{'job': J}], '/v1/jobs/pause': [{'job': J}], '/v1/jobs/resume': [{'job': J}],
            '/v1/once/start': [{**hold, 'key': 'hidden/k'}], '/v1/once/end': [{**hold, 'key': 'hidden/k', 'exit_code': 0}],
        }
        for verb in ('start', 'renew', 'checkpoint', 'complete', 'fail', 'release'):
            post[f'/v1/queues/{verb}'] = [ref]
        for verb in ('park', 'requeue', 'reassign', 'cancel', 'replay', 'drop'):
            post[f'/v1/queues/{verb}'] = [{'id': self.item, 'why': 'w', 'by': 'b', 'to': 'o'}]
        return {**{('GET', path): asks for path, asks in get.items()}, **{('POST', path): asks for path, asks in post.items()}}

    def routes(self):
        for path, methods in self.document['paths'].items():
            for method, operation in methods.items():
                yield method.upper(), path, operation['x-stint-rights']

    def ask(self, client, method, path, what):
        if method == 'POST':
            return client.post(path, what)
        return client.get(f'{path}?{what}' if what else path)

    def test_the_table_has_every_route(self):
        self.assertEqual({(method, path) for method, path, _ in self.routes()}, set(self.table()))

    def test_a_right_opens_its_routes_and_no_others(self):
        for method, path, rights in self.routes():
            if path in STREAMS:
                continue
            for right in RIGHTS:
                answer = self.ask(self.one[right], method, path, {'nothing': 1} if method == 'POST' else 'nothing=1')
                denied = answer.status == 403
                self.assertEqual(denied, bool(rights) and right not in rights, (method, path, right, answer))

    def test_another_prefix_is_closed_and_tells_nothing(self):
        for (method, path), asks in self.table().items():
            for what in asks or []:
                answer = self.ask(self.evil, method, path, what)
                told = answer.body.decode(errors='replace')
                for mark in HIDDEN:
                    self.assertNotIn(mark, told if mark not in json.dumps(what) else '', (method, path, what))
                named = bool(what) and what not in ('prefix=evil/', 'limit=1000')
                if named:
                    self.assertIn(answer.status, (400, 403), (method, path, what, answer))
                if answer.status == 400:  # the request is not whole: then nothing was looked at either
                    self.assertIn(path, self.UNREAD, (method, path, what, answer))

    # Slots and jobs are read whole before they are looked at: their requests are those of schedulers alone.
    UNREAD = ('/v1/jobs/decide', '/v1/jobs/claim', '/v1/jobs/start', '/v1/jobs/running', '/v1/jobs/hand_back', '/v1/jobs/end',
              '/v1/jobs/skip', '/v1/jobs/add', '/v1/once/end', '/v1/once/start')

    def test_a_fence_of_another_prefix_is_denied_alike_whether_it_is_there_or_not(self):
        told = {self.evil.post('/v1/fences/seal', {'target': name, 'offer': self.offer}).body for name in
                (*self.names[:3], 'admit:free', 'admit:hidden/free', 'proxy:http://127.0.0.1:9#hidden/free', 'free')}
        told |= {self.evil.get(f'/v1/fences?target={name}').body for name in ('admit:deploy', 'admit:free', 'plain', 'free')}
        told |= {self.evil.get(f'/v1/fences/act?name={name}&key=k').body for name in ('deploy', 'free', 'evil/taken')}
        self.assertEqual(len(told), 1, told)

    def test_a_key_binds_names_under_its_own_prefix(self):
        for name in ('admit:evil/x', 'proxy:http://127.0.0.1:9#evil/x', 'evil/x'):
            self.assertEqual(self.evil.post('/v1/fences/seal', {'target': name, 'offer': self.offer}).status, 200, name)
            self.assertEqual(self.evil.get('/v1/fences?target=' + name.replace('#', '%23')).json['fence']['resource'], 'evil/r')
        act = {'name': 'evil/act', 'key': 'k', 'owner': 'o'}
        self.assertEqual(self.evil.post('/v1/fences/begin', {'act': act, 'offer': self.offer}).status, 200)
        self.assertEqual(self.evil.get('/v1/fences/act?name=evil/act&key=k').json['act']['resource'], 'evil/r')

    def test_a_name_that_was_bound_before_keeps_its_owner(self):
        self.assertEqual(self.root.post('/v1/fences/seal', {'target': 'admit:old', 'offer': self.offer}).status, 200)
        for verb in ('seal', 'admit'):
            self.assertEqual(self.evil.post(f'/v1/fences/{verb}', {'target': 'admit:old', 'offer': self.offer}).status, 200)
        self.assertEqual(self.evil.get('/v1/fences?target=admit:old').json['fence']['resource'], 'evil/r')
        act = {'name': 'old', 'key': 'k', 'owner': 'o'}
        self.assertEqual(self.evil.post('/v1/fences/begin', {'act': act, 'offer': self.offer}).status, 200)

    def test_an_operator_of_a_prefix_moves_fences_within_it_alone(self):
        bound = self.root.get('/v1/lease?resource=mark-bound').json
        squat = {'resource': 'mark-bound', 'token': bound['token'], 'generation': self.generation}
        self.assertEqual(self.root.post('/v1/fences/seal', {'target': 'admit:evil/squat', 'offer': squat}).status, 200)
        other = self.evil.acquire('evil/other', owner='o').json
        offer = {'resource': 'evil/other', 'token': other['token'], 'generation': self.generation, 'adopt': True, 'by_order': True}
        self.assertEqual(self.evil.post('/v1/fences/seal', {'target': 'admit:evil/m', 'offer': self.offer}).status, 200)
        self.assertEqual(self.evil.post('/v1/fences/seal', {'target': 'admit:evil/m', 'offer': offer}).status, 200)
        self.assertEqual(self.root.get('/v1/fences?target=admit:evil/m').json['fence']['resource'], 'evil/other')
        self.assertEqual(self.evil.post('/v1/fences/seal', {'target': 'admit:evil/squat', 'offer': offer}).status, 403)
        self.assertEqual(self.root.get('/v1/fences?target=admit:evil/squat').json['fence']['resource'], 'mark-bound')
        self.assertEqual(self.root.post('/v1/fences/seal', {'target': 'admit:evil/squat', 'offer': offer}).status, 200)


if __name__ == '__main__':
    main()
