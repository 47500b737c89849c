"""`--store http(s)://`: how long it asks, and what it refuses to ask at all."""
import http.client
import http.server
import json
import threading
import time

from harness import Server, TestCase, main

GENERATION = '0' * 31 + '1'


class Silent:
    """A server that tells what stands behind it, if it is to, and answers nothing else."""

    def __init__(self, greets):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def do_GET(self):
                if not greets or self.path != '/v1/store':
                    outer.over.wait()
                    return
                body = json.dumps({'generation': GENERATION, 'smallest_ttl_ms': 1, 'caveat': ''}).encode()
                self.send_response(200)
                self.send_header('Content-Type', 'application/json')
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self):
                outer.over.wait()

            def log_message(self, *_):
                pass
        self.over = threading.Event()
        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.url = f'http://127.0.0.1:{self.server.server_port}'

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()


class Patience(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(env={'STINT_RESOURCE': 'r', 'STINT_TOKEN': '1', 'STINT_CLAIM': '0' * 31 + '1'})  # its environment alone
        cls.addClassCleanup(cls.server.__exit__)

    def ask(self, greets, *words):
        with Silent(greets) as silent:
            begin = time.monotonic()
            done = self.server.stint(*words, store=f'{silent.url}?timeout=3s', check=False)
            return done, time.monotonic() - begin

    # Regression: a look was repeated after its whole time had passed, with the whole time once more.
    def test_the_timeout_is_for_all_tries_together(self):
        for words in (('ls',), ('acquire', 'r')):
            done, took = self.ask(False, *words)
            self.assertEqual(done.returncode, 69, done.stderr)
            self.assertLess(took, 5.9, words)

    def test_what_was_sent_and_not_answered_in_time_is_unknown(self):
        done, took = self.ask(True, 'release')
        self.assertEqual(done.returncode, 14, done.stderr)
        self.assertLess(took, 5.9)


class Proxies(TestCase):
    def test_the_proxy_of_the_environment_is_asked(self):
        """It is told the whole address, of a name that nobody knows; the key goes along."""
        asked = []
        with Server() as server:
            key = server.key('ci', 'acquire,read')

            class Proxy(http.server.BaseHTTPRequestHandler):
                protocol_version = 'HTTP/1.1'

                def pass_on(self):
                    asked.append(self.path)
                    body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
                    conn = http.client.HTTPConnection('127.0.0.1', server.port, timeout=60)
                    conn.request(self.command, self.path.removeprefix('http://stint.invalid'), body or None,
                                 {'Authorization': self.headers['Authorization']})
                    answer = conn.getresponse()
                    content = answer.read()
                    conn.close()
                    self.send_response(answer.status)
                    self.send_header('Content-Type', 'application/json')
                    self.send_header('Content-Length', str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)

                do_GET = do_POST = pass_on

                def log_message(self, *_):
                    pass
            proxy = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Proxy)
            threading.Thread(target=proxy.serve_forever, daemon=True).start()
            self.addCleanup(proxy.server_close)
            self.addCleanup(proxy.shutdown)
            server.env.update({'http_proxy': f'http://127.0.0.1:{proxy.server_port}', 'no_proxy': '', 'NO_PROXY': ''})
            token = server.stint('acquire', 'r', '--owner', 'me', store='http://stint.invalid', key=key).stdout.strip()
            self.assertEqual(token, '1')
            self.assertIn('http://stint.invalid/v1/acquire', asked)
            server.env['no_proxy'] = 'stint.invalid'
            self.assertEqual(server.stint('ls', store='http://stint.invalid', key=key, check=False).returncode, 69)


class Addresses(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.__exit__)

    def refused(self, url):
        done = self.server.stint('ls', store=url, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        return done.stderr

    def test_a_user_and_a_password_are_refused_not_dropped(self):
        for url in ('http://user:s3cr3tpw@127.0.0.1:1', 'https://user@127.0.0.1:1'):
            said = self.refused(url)
            self.assertIn('STINT_KEY', said)
            self.assertNotIn('s3cr3tpw', said)

    def test_a_file_of_the_url_that_cannot_be_read_is_the_callers_mistake(self):
        for option in ('cacert', 'cert', 'key'):
            self.assertIn(option, self.refused(f'https://127.0.0.1:1?{option}={self.server.dir}/none.pem'))


if __name__ == '__main__':
    main()
