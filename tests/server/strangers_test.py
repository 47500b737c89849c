"""What a page in somebody's browser, a name with odd letters or a key of small reach must not be able to do."""
import json
import socket
from urllib.parse import quote

from harness import Server, TestCase, claim, main, raw, until


class Keyless(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()
        cls.addClassCleanup(cls.server.__exit__)
        cls.c = cls.server.client()

    def test_the_last_name_of_a_page_may_have_any_letters(self):
        names = sorted(['odd/[a', 'odd/b[1]', 'odd/c"[', 'odd/d\\[]'])
        for name in names:
            self.assertEqual(self.c.acquire(name).status, 200, name)
        seen, after = [], ''
        for _ in names:
            page = self.c.get(f'/v1/leases?prefix=odd/&limit=1&after={quote(after)}').json
            seen += [one['resource'] for one in page['leases']]
            after = page['next']
            self.assertEqual(after, seen[-1])
        self.assertEqual(seen, names)

    def test_an_event_has_a_plain_kind_and_a_name(self):
        plain = {'at_ms': 1, 'kind': 'note', 'resource': 'event/a'}
        forged = 'x\n\nevent: granted\ndata: {"kind":"granted"}\n\n'
        wrong = [{**plain, 'kind': kind} for kind in (forged, '', 'a b', 'A', 'a\r', 'k' * 65, 'a-b', '\u00e9')]
        wrong += [{**plain, 'resource': name} for name in ('a\nb', 'x' * 513)] + [{**plain, 'owner': 'a\nb'}]
        for event in wrong:
            answer = self.c.post('/v1/events', {'event': event})
            self.assertEqual((answer.status, answer.code), (400, 'invalid'), event)
        self.assertEqual(self.c.post('/v1/events', {'event': plain}).status, 200)
        self.assertEqual(self.c.post('/v1/events', {'event': {'at_ms': 1, 'kind': 'note_2'}}).status, 200)

    def ask(self, path, host, *fields, body=None):
        text = json.dumps(body) if body is not None else ''
        head = [f'{"POST" if text else "GET"} {path} HTTP/1.1', *([f'Host: {host}'] if host else []), 'Connection: close', *fields]
        if text:
            head.append(f'Content-Length: {len(text)}')
        return raw(self.server.port, '\r\n'.join([*head, '', text]).encode(), end=False)

    def test_it_is_asked_by_a_name_of_this_machine(self):
        port = self.server.port
        for host in ('localhost', f'LocalHost:{port}', f'127.0.0.1:{port}', '127.9.8.7:1', '[::1]', f'[::1]:{port}'):
            self.assertRegex(self.ask('/v1/leases', host), rb'^HTTP/1.1 200 ', host)
        for host in ('evil.example', f'evil.example:{port}', '127.0.0.1.evil.example', 'localhost.evil.example', '192.0.2.1',
                     '127.0.0.256', '127.1', '[::2]', '[::1', '::1', 'localhost:', 'localhost:x', 'localhost:1:2', '[::1]x'):
            answer = self.ask('/v1/leases', host)
            self.assertRegex(answer, rb'^HTTP/1.1 403 ', host)
            self.assertIn(b'"denied"', answer)
        self.assertRegex(self.ask('/healthz', 'pod.example'), rb'^HTTP/1.1 200 ')
        self.assertRegex(self.ask('/readyz', 'pod.example'), rb'^HTTP/1.1 200 ')

    def test_no_page_of_another_place_speaks_to_it(self):
        here = f'127.0.0.1:{self.server.port}'
        bid = {'resource': 'csrf', 'owner': 'page', 'ttl_ms': 60_000}
        plain = 'Content-Type: text/plain'
        for fields in ((plain, 'Origin: https://evil.example'), (plain, 'Origin: null'), (plain, f'Origin: http://localhost:{self.server.port}'),
                       (plain, 'Origin: http://127.0.0.1:1'), (plain, f'Origin: ftp://{here}'), (plain, f'Origin: http://{here}', 'Origin: null'),
                       ('Content-Type: application/json', 'Origin: https://evil.example'), (plain, 'Sec-Fetch-Site: cross-site'),
                       ('Content-Type: application/x-www-form-urlencoded', 'Sec-Fetch-Site: same-site')):
            self.assertRegex(self.ask('/v1/acquire', here, *fields, body=bid), rb'^HTTP/1.1 403 ', fields)
        self.assertRegex(self.ask('/v1/leases', here, 'Sec-Fetch-Site: cross-site'), rb'^HTTP/1.1 403 ')
        self.assertFalse(self.c.get('/v1/lease?resource=csrf').json['held'])
        # Its own page, an address that somebody typed, and `curl -d`.
        own = ('Content-Type: application/json', f'Origin: http://{here}', 'Sec-Fetch-Site: same-origin')
        self.assertRegex(self.ask('/v1/acquire', here, *own, body=bid), rb'^HTTP/1.1 200 ')
        self.assertRegex(self.ask('/v1/leases', here, 'Sec-Fetch-Site: none'), rb'^HTTP/1.1 200 ')
        curl = self.ask('/v1/acquire', here, 'Content-Type: application/x-www-form-urlencoded', body={**bid, 'resource': 'curl'})
        self.assertRegex(curl, rb'^HTTP/1.1 200 ')


class Reach(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server('--max-leases', '1').start()
        cls.addClassCleanup(cls.server.__exit__)
        key = cls.server.key
        cls.root = cls.server.client(key('root', 'read,acquire,admit,queue,schedule,operate,admin'))
        cls.small = cls.server.client(key('small', 'admin,read', '--prefix', 'a/', '--expires', '1d'))
        cls.cron = cls.server.client(key('cron', 'schedule,acquire', '--prefix', 'a/'))
        cls.short = cls.server.client(key('short', 'acquire'))
        until(lambda: cls.short.get('/v1/store').status != 401, 'the keys are known')

    def test_with_keys_the_name_of_the_host_is_free(self):
        fields = f'Host: stint.example\r\nOrigin: https://other.example\r\nAuthorization: Bearer {self.root.key}'
        answer = raw(self.server.port, f'GET /v1/leases HTTP/1.1\r\n{fields}\r\nConnection: close\r\n\r\n'.encode(), end=False)
        self.assertRegex(answer, rb'^HTTP/1.1 200 ')

    def test_a_key_makes_none_that_reaches_further_or_lasts_longer(self):
        hour, day = 3_600_000, 86_400_000
        wrong = ({'prefixes': []}, {'prefixes': ['b/']}, {'prefixes': ['a/x', 'b/']}, {'prefixes': ['a']}, {'prefixes': ['']},
                 {'expires_in_ms': None}, {'expires_in_ms': 2 * day})
        for number, change in enumerate(wrong):
            asked = {'name': f'wrong-{number}', 'allow': ['read'], 'prefixes': ['a/x'], 'expires_in_ms': hour, **change}
            answer = self.small.post('/v1/keys', {name: value for name, value in asked.items() if value is not None})
            self.assertEqual((answer.status, answer.code), (403, 'denied'), asked)
        fine = self.small.post('/v1/keys', {'name': 'fine', 'allow': ['read'], 'prefixes': ['a/', 'a/x'], 'expires_in_ms': hour})
        self.assertEqual(fine.status, 200, fine)
        self.assertEqual(self.root.post('/v1/keys', {'name': 'wide', 'allow': ['read']}).status, 200)
        names = [one['name'] for one in self.root.get('/v1/keys').json['keys']]
        self.assertFalse([name for name in names if name.startswith('wrong')])

    def test_a_slot_ends_by_an_end_and_is_skipped_for_a_reason_within_reach(self):
        now = self.cron.get('/v1/jobs/now').json['now_ms']
        rule = {'name': 'a/job', 'schedule': '0 0 1 1 *', 'loaded_at_ms': now}
        mine = {'resource': 'a/job', 'owner': 'o', 'claim': claim(), 'ttl_ms': 60_000}
        token = self.cron.post('/v1/acquire', mine).json['token']
        at = self.cron.post('/v1/jobs/add', {'rule': rule, 'scheduler': 's'}).json['at_ms']
        slot = {'job': 'a/job', 'at_ms': at, 'scheduler': 's'}
        in_the_way = self.root.get('/v1/lease?resource=a/job').json
        skips = [{'state': state} for state in ('due', 'claimed', 'starting', 'running', 'ran', 'lost', 'quarantined', 'nonsense')]
        skips += [{'state': 'skipped_held', 'by': {**in_the_way, 'resource': name}} for name in ('a/x\ny', '')]
        skips += [{'state': 'skipped_held', 'scheduler': 'a\nb'}]
        for change in skips:
            answer = self.cron.post('/v1/jobs/skip', {**slot, **change})
            self.assertEqual((answer.status, answer.code), (400, 'invalid'), (change, answer))
        far = self.cron.post('/v1/jobs/skip', {**slot, 'state': 'skipped_held', 'by': {**in_the_way, 'resource': 'b/secret'}})
        self.assertEqual((far.status, far.code), (403, 'denied'))
        self.assertEqual(self.root.get('/v1/events?prefix=b/').json['events'], [])
        proof = {**slot, 'owner': 'o', 'resource': 'a/job', 'token': token, 'claim': mine['claim']}
        self.assertEqual(self.cron.post('/v1/jobs/claim', proof).status, 200)
        self.assertEqual(self.cron.post('/v1/jobs/start', proof).status, 200)
        for state in ('due', 'claimed', 'starting', 'running', 'skipped_held', 'quarantined', ''):
            answer = self.cron.post('/v1/jobs/end', {**proof, 'state': state, 'rule': rule})
            self.assertEqual((answer.status, answer.code), (400, 'invalid'), state)
        self.assertEqual(self.cron.post('/v1/jobs/end', {**proof, 'state': 'failed', 'exit_code': 1, 'rule': rule}).status, 200)
        until(lambda: self.cron.get('/v1/jobs/now').json['now_ms'] > at, 'the next millisecond')
        slot['at_ms'] = self.cron.post('/v1/jobs/add', {'rule': rule, 'scheduler': 's'}).json['at_ms']
        self.assertEqual(self.cron.post('/v1/jobs/skip', {**slot, 'state': 'failed', 'by': in_the_way}).status, 200)

    def test_what_has_ended_no_longer_counts_against_the_key(self):
        """By itself, by an order, by its release."""
        self.assertEqual(self.short.acquire('limit/1', ttl_ms=1000).status, 200)
        until(lambda: self.short.acquire('limit/2', ttl_ms=600_000).status == 200, 'what ran out is forgotten')
        full = self.short.acquire('limit/3')
        self.assertEqual((full.status, full.code), (429, 'denied'))
        token = self.root.get('/v1/lease?resource=limit/2').json['token']
        order = {'why': 'w', 'by': 'b'}
        self.assertEqual(self.root.post('/v1/revoke', {'resource': 'limit/2', 'token': token, **order}).status, 200)
        moved = self.short.acquire('limit/4', ttl_ms=600_000)
        self.assertEqual(moved.status, 200)
        given = {'resource': 'limit/4', 'token': moved.json['token'], 'to': 'heir', **order}
        self.assertEqual(self.root.post('/v1/transfer', given).status, 200)
        last = self.short.acquire('limit/5', ttl_ms=600_000)
        self.assertEqual(last.status, 200)
        hold = {'resource': 'limit/5', 'token': last.json['token'], 'claim': last.claim}
        self.assertEqual(self.short.post('/v1/renew', {**hold, 'ttl_ms': 600_000}).status, 200)
        self.assertEqual(self.short.acquire('limit/6').status, 429)
        self.assertEqual(self.short.post('/v1/release', hold).status, 200)
        self.assertEqual(self.short.acquire('limit/6').status, 200)

    def at_once(self, key, bids):
        """All of them are on their way before the first is answered."""
        socks = []
        for bid in bids:
            body = json.dumps({'owner': 'o', 'claim': claim(), 'ttl_ms': 600_000, **bid})
            head = f'POST /v1/acquire HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Length: {len(body)}\r\n\r\n'
            socks.append(socket.create_connection(('127.0.0.1', self.server.port), timeout=60))
            self.addCleanup(socks[-1].close)
            socks[-1].sendall((head + body)[:-1].encode())
        for sock in socks:
            sock.sendall(b'}')
        return socks

    def test_many_acquires_at_once_are_within_the_limit_of_the_key(self):
        crowd = self.server.key('crowd', 'acquire')
        c = self.server.client(crowd)
        until(lambda: c.get('/v1/store').status != 401, 'the key is known')
        socks = self.at_once(crowd, [{'resource': f'crowd/{i}'} for i in range(30)])
        statuses = sorted(int(sock.recv(65536).split()[1]) for sock in socks)
        self.assertEqual(statuses, [200] + [429] * 29)
        held = [one for one in self.root.get('/v1/leases?prefix=crowd/').json['leases'] if one['state'] == 'held']
        self.assertEqual(len(held), 1, held)

    def test_who_waits_has_a_place_among_the_leases_of_the_key(self):
        line = self.server.key('line', 'acquire')
        c = self.server.client(line)
        until(lambda: c.get('/v1/store').status != 401, 'the key is known')
        self.server.stint('acquire', 'line/0', '--ttl', '1h')
        self.server.stint('acquire', 'line/1', '--ttl', '1h')
        waiting, = self.at_once(line, [{'resource': 'line/0', 'wait_ms': 60_000}])
        until(lambda: self.root.get('/v1/waiters').json['waiters'], 'it waits')
        full = c.acquire('line/2')
        self.assertEqual((full.status, full.code), (429, 'denied'))
        self.assertEqual(c.acquire('line/1', wait_ms=60_000).status, 429)
        # Who goes away gives its place back, and so does who is refused.
        waiting.close()
        until(lambda: not self.root.get('/v1/waiters').json['waiters'], 'it is gone')
        self.assertEqual(c.acquire('line/0').status, 409)
        self.assertEqual(c.acquire('line/0', wait_ms=10).status, 409)
        self.assertEqual(c.acquire('line/2').status, 200)


if __name__ == '__main__':
    main()
