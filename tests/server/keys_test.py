"""Who may come in: keys, prefixes, owners, rights; and what is refused cleanly without leaking a thing."""
import http.client
import json
import os
import socket
import subprocess
import time

from harness import STINT, Client, Server, TestCase, certificate, claim, main, raw, until


class Keys(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server('--log', 'json+all', '--header-timeout', '1s', '--body-timeout', '1s').start()
        # Before the first key everybody on this machine comes in.
        cls.before = cls.server.client().get('/v1/store').status
        cls.key = cls.server.key('ci', 'acquire,read', '--prefix', 'team-a/')
        cls.root = cls.server.key('root', 'read,acquire,admit,operate,admin')
        until(lambda: cls.server.client().get('/v1/store').status == 401, 'the server knows that there are keys')
        cls.ci = cls.server.client(cls.key)
        cls.admin = cls.server.client(cls.root)
        until(lambda: cls.admin.get('/v1/store').status == 200, 'the server knows the second key')

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def tearDown(self):
        # The server lives.
        self.assertEqual(self.server.client().get('/healthz').status, 200)

    def test_before_the_first_key_loopback_is_open(self):
        self.assertEqual(self.before, 200)

    def test_no_key_a_wrong_key_and_half_a_key(self):
        secret = self.key
        wrong = secret[:-1] + ('0' if secret[-1] != '0' else '1')
        for shown in (None, 'x', wrong, secret[:-2], secret + '0', secret.upper(), 'stint_' + '0' * 16 + '_' + '0' * 64):
            answer = self.server.client(shown).get('/v1/leases')
            self.assertEqual((answer.status, answer.code), (401, 'denied'), shown)
            self.assertEqual(answer.headers['www-authenticate'], 'Bearer')
        for header in ('Basic ' + secret, 'bearer ' + secret, 'Bearer  ' + secret, secret):
            answer = self.server.client().get('/v1/leases', headers={'Authorization': header})
            self.assertEqual(answer.status, 401, header)

    def test_an_expired_and_a_revoked_key(self):
        short = self.server.key('short', 'read', '--expires', '300ms')
        until(lambda: 'has expired' in self.server.client(short).get('/v1/store').body.decode(), 'the key expires')
        gone = self.server.key('gone', 'read')
        c = self.server.client(gone)
        until(lambda: c.get('/v1/store').status == 200, 'the new key is known')
        self.server.stint('key', 'revoke', 'gone')
        until(lambda: c.get('/v1/store').status == 401, 'the revoked key is refused')
        self.assertIn('revoked', c.get('/v1/store').body.decode())
        kinds = [one['kind'] for one in self.admin.get('/v1/events?limit=1000').json['events']]
        self.assertIn('key_created', kinds)
        self.assertIn('key_revoked', kinds)
        listed = json.loads(self.server.stint('key', 'ls', '--json').stdout)
        self.assertEqual([one['name'] for one in listed if one['revoked_at_ms']], ['gone'])
        self.assertNotIn(gone.split('_')[2], json.dumps(listed))

    def test_another_prefix_is_out_of_reach(self):
        self.assertEqual(self.ci.acquire('team-a/x').status, 200)
        for name in ('team-b/x', 'team-a', 'x', 'team-a%2fx', 'TEAM-A/x', 'team\u2010a/x'):
            answer = self.ci.acquire(name)
            self.assertEqual((answer.status, answer.code), (403, 'denied'), name)
        self.assertEqual(self.ci.get('/v1/lease?resource=team-b/x').status, 403)
        self.assertEqual(self.ci.get('/v1/history?resource=team-b/x').status, 403)
        self.admin.acquire('team-b/secret')
        self.assertNotIn(b'team-b', self.ci.get('/v1/leases').body)
        self.assertNotIn(b'team-b', self.ci.get('/v1/events?limit=1000').body)
        self.assertEqual(self.ci.get('/v1/leases?prefix=team-b/').status, 403)
        both = {'resources': ['team-a/1', 'team-b/1'], 'owner': 'o', 'ttl_ms': 9000}
        self.assertEqual(self.ci.post('/v1/acquire', both).status, 403)

    def test_a_key_does_what_it_allows(self):
        granted = self.ci.acquire('team-a/rights').json
        order = {'resource': 'team-a/rights', 'token': granted['token'], 'why': 'w', 'by': 'b'}
        for path in ('/v1/revoke', '/v1/transfer', '/v1/forget', '/v1/keys', '/v1/fences/admit'):
            self.assertEqual(self.ci.post(path, order).status, 403, path)
        reader = self.server.client(self.server.key('reader', 'read'))
        until(lambda: reader.get('/v1/store').status == 200, 'the new key is known')
        self.assertEqual(reader.acquire('team-a/r').status, 403)
        self.assertEqual(reader.get('/metrics').status, 200)
        self.assertEqual(self.server.client().get('/metrics').status, 401)
        made = self.admin.post('/v1/keys', {'name': 'by-http', 'allow': ['read']})
        self.assertTrue(made.json['secret'].startswith('stint_'))
        too_much = self.admin.post('/v1/keys', {'name': 'more', 'allow': ['queue']})
        self.assertEqual(too_much.status, 403)

    def test_the_owner_is_the_key_and_the_label(self):
        self.assertEqual(self.ci.acquire('team-a/o', owner='run-1').json['owner'], 'ci/run-1')
        # Nobody speaks in another's name; two runs with one key are two owners.
        spoofed = self.ci.acquire('team-a/o2', owner='root/run-1')
        self.assertEqual(spoofed.json['owner'], 'ci/root/run-1')
        hold = {'resource': 'team-a/o', 'token': 1, 'claim': claim(), 'owner': 'run-1'}
        self.assertEqual(self.ci.post('/v1/renew', {**hold, 'ttl_ms': 9000}).json['error']['cause'], 'not_holder')
        self.assertEqual(self.ci.acquire('team-a/o', owner='run-2').status, 409)
        told = {'event': {'at_ms': 1, 'kind': 'note', 'resource': 'team-a/o', 'owner': 'root/x'}}
        self.assertEqual(self.ci.post('/v1/events', told).status, 200)
        mine = [one for one in self.ci.get('/v1/events?limit=1000').json['events'] if one['kind'] == 'note']
        self.assertEqual(mine[0]['owner'], 'ci/root/x')

    def test_an_idempotency_key_is_of_its_api_key(self):
        body = {'resource': 'team-a/idem', 'owner': 'o', 'claim': claim(), 'ttl_ms': 9000}
        self.assertEqual(self.ci.post('/v1/acquire', body, headers={'Idempotency-Key': 'k'}).status, 200)
        other = self.admin.post('/v1/acquire', {**body, 'claim': claim()}, headers={'Idempotency-Key': 'k'})
        self.assertEqual(other.status, 409)

    def test_the_command_line_with_a_key(self):
        ran = self.server.stint('run', 'team-a/cli', '--owner', 'me', '--', 'true', store=self.server.url, key=self.key)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(self.ci.get('/v1/lease?resource=team-a/cli').json['owner'], 'ci/me')
        path = self.server.dir + '/key'
        with open(path, 'w') as file:
            file.write(self.key + '\n')
        self.server.env['STINT_KEY_FILE'] = path
        token = self.server.stint('acquire', 'team-a/cli2', store=self.server.url).stdout.strip()
        self.server.stint('release', 'team-a/cli2', '--token', token, store=self.server.url)
        self.server.env['STINT_KEY_FILE'] = path + '-none'
        self.assertEqual(self.server.stint('ls', store=self.server.url, check=False).returncode, 2)
        self.server.env.pop('STINT_KEY_FILE')
        self.assertEqual(self.server.stint('ls', store=self.server.url, check=False).returncode, 77)
        self.assertEqual(self.server.stint('acquire', 'x', store=self.server.url, key=self.key, check=False).returncode, 77)
        keys = self.server.stint('key', 'ls', store=self.server.url, key=self.root).stdout
        self.assertIn('team-a/', keys)

    def test_hostile_names(self):
        bad = ('', '\u0000', 'a\u0000b', 'a\nb', '\u2028', 'x' * 513, '\u0085')
        for name in bad:
            self.assertEqual(self.admin.acquire(name).status, 400, repr(name))
        self.assertEqual(self.admin.acquire('x' * 512).status, 200)
        for query in ('%00', '%', '%zz', '%2', 'a%ff', 'a&resource=b', ''):
            self.assertEqual(self.admin.get(f'/v1/lease?resource={query}').status, 400, query)
        # Names are names, never paths; a path is never decoded.
        for name in ('../../etc/passwd', '%2e%2e/x', '/v1/keys', 'a/../b'):
            answer = self.admin.acquire(name)
            self.assertEqual((answer.status, answer.json.get('resource')), (200, name))
        for path in ('/v1/../v1/keys', '/v1/%6beys', '/V1/keys', '//v1/keys', '/v1/keys/', '/v1', '/assets', '/assets/', '/assets/../', '/index.html'):
            self.assertEqual(self.admin.get(path).status, 404, path)
        self.assertEqual(self.admin.get('/v1/acquire').status, 405)
        # Look-alikes are different names.
        self.assertEqual(self.admin.acquire('caf\u00e9').status, 200)
        self.assertEqual(self.admin.acquire('cafe\u0301').status, 200)

    def test_hostile_json(self):
        good = '{"resource":"j","owner":"o","ttl_ms":9000}'
        bad = ['', '{', '[]', 'null', '1', '"x"', good + '{}', good[:-1], good.replace('9000', '9000.5'), good.replace('9000', '9e3'),
               good.replace('9000', '"9000"'), good.replace('9000', '-1'), good.replace('9000', 'true'),
               good.replace('9000', '99999999999999999999'), good.replace('9000', '09000'), good.replace('"j"', '["j"]'),
               good.replace('"o"', '{}'), good.replace('"owner"', '"resource"'), good.replace('"owner":"o"', '"owner":"o","owner":"p"'),
               good.replace('"owner":"o"', '"owner":"o","extra":1'), good.replace('"j"', '"\\ud800"'), good.replace('"j"', '"\\x"'),
               good.replace('"j"', '"a\tb"'), '[' * 100_000, '{"a":' * 50_000, good.replace('"j"', '"' + 'x' * 5000 + '"'), "{'a':1}",
               '{"a":1,}', '/**/{}', '\ufeff' + good]
        for text in bad:
            answer = self.admin.call('POST', '/v1/acquire', raw=text.encode())
            self.assertEqual((answer.status, answer.code), (400, 'invalid'), text[:80])
        self.assertEqual(self.admin.call('POST', '/v1/acquire', raw=b'{"resource":"\xff"}').status, 400)
        self.assertEqual(self.admin.call('POST', '/v1/acquire', raw=good.encode()).status, 200)

    def test_hostile_http(self):
        port, auth = self.server.port, f'Authorization: Bearer {self.root}\r\n'
        body = json.dumps({'resource': 'h', 'owner': 'o', 'ttl_ms': 9000})

        def post(more, text=body):
            return raw(port, f'POST /v1/acquire HTTP/1.1\r\nHost: x\r\n{auth}{more}\r\n{text}'.encode())
        n = len(body)
        for more in (f'Content-Length: {n}\r\nContent-Length: {n}\r\n', f'Content-Length: {n}\r\nContent-Length: {n + 1}\r\n',
                     f'Content-Length: {n}\r\nTransfer-Encoding: chunked\r\n', 'Content-Length: -1\r\n', 'Content-Length: 1x\r\n',
                     'Content-Length: 99999999999999999999\r\n', 'Transfer-Encoding: gzip\r\n', 'X : y\r\n', ' folded\r\n',
                     'Content-Length: 5\n'):
            self.assertRegex(post(more), rb'^HTTP/1.1 400 ', more)
        self.assertRegex(post('Content-Length: 300000\r\n'), rb'^HTTP/1.1 413 ')
        self.assertRegex(raw(port, b'GET /healthz HTTP/1.1\r\nHost: x\r\nX: ' + b'y' * 100_000 + b'\r\n\r\n'), rb'^HTTP/1.1 431 ')
        self.assertRegex(raw(port, b'GET /healthz HTTP/1.1\r\nHost: x\r\n' + b'A: b\r\n' * 500 + b'\r\n'), rb'^HTTP/1.1 4(00|31) ')
        self.assertRegex(raw(port, b'\x16\x03\x01\x02\x00\x01\x00'), rb'^(HTTP/1.1 400 |$)')
        self.assertRegex(raw(port, b'GET http://evil/ HTTP/1.1\r\nHost: x\r\n\r\n'), rb'^HTTP/1.1 400 ')
        # Pipelined requests are answered one after the other, in order.
        two = (f'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /v1/lease?resource=h HTTP/1.1\r\nHost: x\r\n{auth}\r\n'
               f'GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
        answers = raw(port, two.encode(), end=False)
        self.assertEqual([piece[:3] for piece in answers.split(b'HTTP/1.1 ')[1:]], [b'200', b'200', b'404'])

    def test_slow_clients_are_cut_off(self):
        port = self.server.port
        begin = time.monotonic()
        self.assertRegex(raw(port, b'GET /healthz HTTP/1.1\r\nHost:', end=False), rb'^HTTP/1.1 408 ')
        head = f'POST /v1/acquire HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.root}\r\nContent-Length: 100\r\n\r\n{{"a'
        self.assertRegex(raw(port, head.encode(), end=False), rb'^HTTP/1.1 408 ')
        # Who says nothing at all is not kept for --idle-timeout.
        self.assertEqual(raw(port, b'', end=False), b'')
        self.assertLess(time.monotonic() - begin, 50)

    def test_a_body_that_trickles_is_cut_off(self):
        """Never a second without a byte, and never the whole: four times --body-timeout are for all of it."""
        begin = time.monotonic()
        head = f'POST /v1/acquire HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.root}\r\nContent-Length: 100000\r\n\r\n'
        with socket.create_connection(('127.0.0.1', self.server.port), timeout=0.2) as sock:
            sock.sendall(head.encode())

            def answer():
                try:
                    return sock.recv(65536)
                except TimeoutError:
                    sock.sendall(b' ')
                    return None
            got = until(answer, 'the trickle is cut off', patience=30)
        self.assertRegex(got, rb'^HTTP/1.1 408 ')
        self.assertGreater(time.monotonic() - begin, 3)

    def test_nothing_leaks_into_the_log(self):
        mine = claim()
        self.ci.acquire('team-a/log', claim=mine, note='a private note')
        self.server.client('stint_' + 'f' * 16 + '_' + 'e' * 64).get('/v1/leases')
        until(lambda: '"status":401' in self.server.text(), 'the refusal is logged')
        log = self.server.text()
        for secret in (self.key, self.root, self.key.split('_')[2], 'e' * 64, mine, 'a private note', 'team-a/log'):
            self.assertNotIn(secret, log)
        self.assertIn('"key":"ci"', log)
        for line in log.splitlines():
            json.loads(line)
        self.assertTrue(any('listening on' in json.loads(line).get('message', '') for line in log.splitlines()))


class Inside(TestCase):
    """Who was let in and is still here: a wait, a stream. A key that is over ends them as it ends requests."""

    def setUp(self):
        self.server = Server('--max-waiters', '2').start()
        self.addCleanup(self.server.__exit__)

    def keys(self, *more):
        root = self.server.client(self.server.key('root', 'read,acquire,admit,queue,operate,admin'))
        guest = self.server.client(self.server.key('guest', 'read,acquire,queue', *more))
        until(lambda: guest.get('/v1/store').json.get('key') == 'guest', 'the keys are known')
        return root, guest

    def stream(self, path, key=None):
        sock = socket.create_connection(('127.0.0.1', self.server.port), timeout=60)
        self.addCleanup(sock.close)
        auth = f'Authorization: Bearer {key}\r\n' if key else ''
        sock.sendall(f'GET {path} HTTP/1.1\r\nHost: localhost\r\n{auth}Accept: text/event-stream\r\n\r\n'.encode())
        got = b''
        while b'retry:' not in got:
            got += sock.recv(65536)
        self.assertIn(b'200 OK', got)
        return sock

    def ended(self, sock):
        """All that came until the server closed it."""
        got = b''
        while piece := sock.recv(65536):
            got += piece
        return got

    def revoke(self, root):
        self.assertEqual(root.post('/v1/keys/revoke', {'key': 'guest'}).status, 200)

    def test_a_stream_ends_with_its_key(self):
        root, guest = self.keys()
        streams = [self.stream(path, guest.key) for path in ('/v1/events', '/v1/watch?resource=r', '/v1/jobs/watch')]
        other = self.stream('/v1/events', root.key)
        self.revoke(root)
        for one in streams:
            self.assertTrue(self.ended(one).endswith(b'0\r\n\r\n'))
        self.assertEqual(root.acquire('r').status, 200)
        got = b''
        while b'"granted"' not in got:
            got += other.recv(65536)
        until(lambda: b'\nstint_event_streams 1\n' in root.get('/metrics').body, 'one is left')

    def test_a_stream_ends_when_its_key_expires(self):
        _, guest = self.keys('--expires', '3s')
        self.ended(self.stream('/v1/events', guest.key))

    def test_a_stream_of_nobody_ends_with_the_first_key(self):
        stream = self.stream('/v1/events')
        self.keys()
        self.ended(stream)

    def test_a_wait_ends_with_its_key_and_nothing_is_granted(self):
        root, guest = self.keys()
        held = root.acquire('r')
        guest.conn.request('POST', '/v1/acquire', json.dumps({'resource': 'r', 'ttl_ms': 60_000, 'wait_ms': 600_000}),
                           {'Authorization': f'Bearer {guest.key}'})
        claim_ = self.server.client(guest.key)
        root.post('/v1/queues/configure', {'queue': 'q', 'limits': {}})
        claim_.conn.request('POST', '/v1/queues/claim', json.dumps({'queue': 'q', 'ttl_ms': 60_000, 'wait_ms': 600_000}),
                            {'Authorization': f'Bearer {guest.key}'})

        def waiting():
            text = root.get('/metrics').body
            return b'\nstint_waiters 1\n' in text and b'\nstint_queue_waiters 1\n' in text
        until(waiting, 'both wait')
        # Both count against the limit of those who wait, whatever they wait for.
        self.assertEqual(root.acquire('r', wait_ms=1).status, 429)
        self.revoke(root)
        for one in (guest, claim_):
            answer = one.conn.getresponse()
            self.assertEqual(answer.status, 401)
            self.assertIn(b'revoked', answer.read())
        root.post('/v1/release', {'resource': 'r', 'token': held.json['token'], 'claim': held.claim})
        root.post('/v1/queues/put', {'queue': 'q', 'payload': 'p'})
        mine = root.acquire('r')
        self.assertEqual((mine.status, mine.json['token']), (200, held.json['token'] + 1))
        self.assertEqual(root.post('/v1/queues/claim', {'queue': 'q', 'ttl_ms': 60_000}).json['item']['epoch'], 1)

    def test_a_stream_whose_client_is_gone_has_given_its_place_up(self):
        with Server('--max-streams', '1') as self.server:
            c = self.server.client()
            self.stream('/v1/events').close()
            self.assertEqual(until(lambda: b'\nstint_event_streams 0\n' in c.get('/metrics').body, 'none is left', patience=10), True)
            self.stream('/v1/watch?resource=r')
            self.assertEqual(c.get('/v1/watch?resource=r').status, 429)


class Doors(TestCase):
    def test_without_a_key_only_loopback(self):
        server = Server()
        done = subprocess.run([STINT, 'serve', '--listen', '0.0.0.0:0'], env=server.env, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn('loopback', done.stderr)

    def test_demo_has_a_store_of_its_own(self):
        with Server('--demo') as server:
            self.assertEqual(server.client().acquire('d').status, 200)
            self.assertFalse(os.path.exists(server.dir + '/state/stint/stint.db'))
        # A proxy of the environment that leads nowhere: it is said, and the demo plays all the same.
        with Server('--demo', env={'all_proxy': 'http://127.0.0.1:1', 'no_proxy': '', 'NO_PROXY': ''}) as server:
            until(lambda: 'the demo plays on the store itself' in server.text(), 'it is said')
            until(lambda: server.client().get('/v1/leases').json['leases'], 'the demo plays')
        done = subprocess.run([STINT, 'serve', '--demo', '--listen', '0.0.0.0:0'], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2, done.stderr)

    def test_limits_of_rate_leases_waiters_and_connections(self):
        with Server('--rate', '5', '--max-leases', '2', '--max-waiters', '1', '--max-connections', '3') as server:
            key = server.key('k', 'acquire,read')
            c = server.client(key)
            until(lambda: c.get('/v1/store').json.get('key') == 'k', 'the key is known')
            limited = until(lambda: (seen := c.get('/v1/store')).status == 429 and seen, 'the rate is used up')
            self.assertEqual(limited.headers['retry-after'], '1')
            def taken(name):
                answer = c.acquire(name)
                return None if 'too many requests' in answer.body.decode() else answer
            self.assertEqual(until(lambda: taken('a'), 'within the rate').status, 200)
            self.assertEqual(until(lambda: taken('b'), 'within the rate').status, 200)
            third = until(lambda: taken('c'), 'within the rate')
            self.assertEqual((third.status, third.code), (429, 'denied'))
            open_ = [socket.create_connection(('127.0.0.1', server.port)) for _ in range(4)]
            got = b''
            open_[-1].settimeout(30)
            until(lambda: open_[-1].recv(100).startswith(b'HTTP/1.1 503'), 'one too many is told so')
            for one in open_:
                one.close()

    def test_the_certificate_is_needed_and_read_anew(self):
        server = Server()
        certificate(server.dir, 'one')
        server.options = ['--tls-cert', f'{server.dir}/one.pem', '--tls-key', f'{server.dir}/one.key']
        with server:
            url = f'https://127.0.0.1:{server.port}'
            token = server.stint('acquire', 't', store=f'{url}?cacert={server.dir}/one.pem').stdout.strip()
            self.assertEqual(token, '1')
            untrusted = server.stint('ls', store=url, check=False)
            self.assertEqual(untrusted.returncode, 69, untrusted.stderr)
            plain = raw(server.port, b'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n', end=False)
            self.assertIn(b'https://', plain)
            self.assertRegex(plain, rb'^HTTP/1.1 400 ')
            certificate(server.dir, 'two')
            os.replace(f'{server.dir}/two.key', f'{server.dir}/one.key')
            os.replace(f'{server.dir}/two.pem', f'{server.dir}/one.pem')
            server.process.send_signal(1)
            until(lambda: 'read anew' in server.text(), 'the certificate is read anew')
            ran = server.stint('run', 't2', '--', 'true', store=f'{url}?cacert={server.dir}/one.pem')
            self.assertEqual(ran.returncode, 0)
        server = Server()
        certificate(server.dir, 'srv')
        certificate(server.dir, 'cli')
        server.options = ['--tls-cert', f'{server.dir}/srv.pem', '--tls-key', f'{server.dir}/srv.key', '--tls-client-ca', f'{server.dir}/cli.pem']
        with server:
            url = f'https://127.0.0.1:{server.port}?cacert={server.dir}/srv.pem'
            self.assertEqual(server.stint('ls', store=url, check=False).returncode, 69)
            server.stint('ls', store=f'{url}&cert={server.dir}/cli.pem&key={server.dir}/cli.key')


if __name__ == '__main__':
    main()
