"""`stint doctor` through a server: the same lines and the same exit codes as on a store of one's own."""
import json
import os

from harness import Server, TestCase, main, until


class Doctor(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()
        cls.root = cls.server.key('root', 'read,operate,admin')
        cls.reader = cls.server.key('reader', 'read,acquire')
        for secret in (cls.root, cls.reader):
            until(lambda s=secret: cls.server.client(s).get('/v1/store').status == 200, 'the key is known')

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def doctor(self, *words, key=None):
        return self.server.stint('doctor', *words, key=key, store=self.server.url, check=False)

    def test_its_lines_are_those_of_a_store_of_ones_own(self):
        told = self.doctor(key=self.root)
        self.assertEqual(told.returncode, 0, told.stdout + told.stderr)
        checks = [line.split()[1] for line in told.stdout.splitlines()]
        own = self.server.stint('doctor')
        self.assertEqual(checks, [line.split()[1] for line in own.stdout.splitlines()], told.stdout)
        self.assertIn('8 threads counted to 120', told.stdout)
        self.assertIn('this store can carry leases', told.stderr)
        # The last one is told again, as JSON too.
        rows = json.loads(self.doctor('--json', key=self.root).stdout)
        self.assertEqual([row['check'] for row in rows], checks)
        self.assertEqual({'check', 'level', 'text'}, set(rows[0]))

    def test_what_may_not_be_had(self):
        for key in (self.reader, None):
            refused = self.doctor(key=key)
            self.assertEqual((refused.returncode, refused.stdout), (77, ''), refused.stderr)
        self.assertIn("'reader'", self.doctor(key=self.reader).stderr)
        for words in (('doctor', '--accept-restored', '--why', 'x'), ('torture', '--for', '1s'),
                      ('store', 'copy', self.server.url, f'sqlite:{self.server.dir}/new.db')):
            refused = self.server.stint(*words, key=self.root, store=self.server.url, check=False)
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertIn('is a server: run it where the server runs', refused.stderr)
        self.assertFalse(os.path.exists(f'{self.server.dir}/new.db'))


class Unsafe(TestCase):
    def test_what_a_server_finds_wrong_is_exit_1(self):
        """A store in which one line says fail: what the server tells is judged, not only printed."""
        import http.server
        import threading

        class Told(http.server.BaseHTTPRequestHandler):
            asked = 0

            def answer(self):
                self.rfile.read(int(self.headers.get('Content-Length') or 0))
                body = {'generation': '0' * 32, 'smallest_ttl_ms': 100, 'caveat': '', 'version': '1', 'key': ''}
                if self.path == '/v1/doctor':
                    Told.asked += 1
                    first, last = ({'check': check, 'level': level, 'text': 't'}
                                   for check, level in (('whole', 'ok'), ('visible', 'fail')))
                    body = {'running': Told.asked < 3, 'began_at_ms': 5, 'findings': [first, last][:Told.asked]}
                data = json.dumps(body).encode()
                self.send_response(200)
                self.send_header('Content-Length', str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            do_GET = do_POST = answer

            def log_message(self, *_):
                pass
        listener = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Told)
        threading.Thread(target=listener.serve_forever, daemon=True).start()
        world = Server()
        try:
            done = world.stint('doctor', store=f'http://127.0.0.1:{listener.server_port}', check=False)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertEqual([line.split()[:2] for line in done.stdout.splitlines()],
                             [['ok', 'whole'], ['fail', 'visible']])
            self.assertIn('NOT safe', done.stderr)
        finally:
            world.__exit__()
            listener.shutdown()
            listener.server_close()


if __name__ == '__main__':
    main()
