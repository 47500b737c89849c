"""A stint.toml that is merely found may be anybody's: the store that it names is shown no secret. Every command, against
a listener that records what it is sent."""
import os
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import threading

from harness import STINT, PATIENCE, TestCase, certificate, main

KEY = 'stint_0123456789abcdef_' + 'a5' * 32
PASSWORD = 'pw-of-the-environment'


class Stranger:
    """Takes whatever comes, asks a PostgreSQL client for its password in clear, and answers HTTP with `answer`."""

    def __init__(self, answer=b'HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}'):
        self.answer, self.got, self.calls = answer, b'', 0
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                sock = self.listener.accept()[0]
            except OSError:
                return
            self.calls += 1
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        with sock:
            sock.settimeout(PATIENCE)
            try:
                while data := sock.recv(65536):
                    self.got += data
                    if data[:1] == b'\0' and struct.unpack('>I', data[4:8])[0] in (80877103, 80877104):
                        sock.sendall(b'N')  # no TLS here
                    elif data[:1] == b'\0':
                        sock.sendall(b'R' + struct.pack('>II', 8, 3))  # the password in clear, please
                    elif data[:1] == b'p':
                        return
                    elif b'\r\n\r\n' in data:
                        sock.sendall(self.answer)
                        return
            except OSError:
                pass

    def close(self):
        self.listener.close()


# What reads ./stint.toml for its store; the rest of the table never does. Each with words that get as far as its store.
READERS = {
    'cron': [['cron'], ['cron', '--once'], ['cron', 'pause', 'j'], ['cron', 'resume', 'j'], ['cron', 'trigger', 'j'],
             ['cron', 'run', 'j', '--slot', '2026-01-01T00:00:00Z']],
    'slots': [['slots', 'j']],
    'tune': [['tune', 'j']],
    'queue': [['queue', 'put', 'q', 'x']],
    'work': [['work', 'q', '--', 'true']],
}
OTHERS = {
    'run': [['run', 'r', '--', 'true']], 'acquire': [['acquire', 'r2']], 'renew': [['renew', 'r', '--token', '1']],
    'release': [['release', 'r', '--token', '1']], 'check': [['check', 'r', '--token', '1']],
    'progress': [['progress', 'm', '--token', '1']], 'transfer': [['transfer', 'r', '--to', 'o', '--why', 'w', '--token', '1']],
    'revoke': [['revoke', 'r', '--why', 'w', '--token', '1']], 'write': [['write', 'f']],
    'publish': [['publish', 'd', '--from', 'e']], 'push': [['push']], 'seal': [['seal', 'admit:x', '--resource', 'r', '--token', '1']],
    'proxy': [['proxy', '--listen', ':0']], 'serve': [['serve', '--listen', 'nowhere']], 'key': [['key', 'ls']],
    'admit': [['admit', 'n', '--show', 'k']], 'guard': [['guard', 'check', 'admit:x']],
    'explain': [['explain', 'j', '--down', '23:00..07:12']], 'once': [['once', 'k', '--', 'true']], 'ls': [['ls']],
    'show': [['show', 'r']], 'history': [['history', 'r']], 'events': [['events']], 'watch': [], 'top': [['top']],
    'forget': [['forget', 'r']], 'config': [['config', 'show']], 'doctor': [['doctor']], 'torture': [],
    'store': [['store', 'copy', 'sqlite:a', 'sqlite:b']], 'version': [['version']], 'completion': [['completion', 'bash']],
    'help': [['help']], 'cron-offline': [['cron', 'check'], ['cron', 'next', '* * * * *']],
    'queue-undeclared': [['queue', 'claim', 'q'], ['queue', 'ls'], ['queue', 'show', 'q/1']],
}


class FoundFile(TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='stint-found-', dir=os.environ.get('TMPDIR'))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.repo = f'{self.dir}/repo'
        os.makedirs(self.repo)
        os.makedirs(f'{self.dir}/config/stint')
        self.own = f'{self.dir}/config/stint/config.toml'
        self.stranger = Stranger()
        self.addCleanup(self.stranger.close)
        self.url = f'http://127.0.0.1:{self.stranger.port}'
        self.env = {'PATH': os.environ['PATH'], 'HOME': self.dir, 'XDG_STATE_HOME': f'{self.dir}/state',
                    'XDG_CONFIG_HOME': f'{self.dir}/config'}

    def say(self, store, path=None):
        with open(path or f'{self.repo}/stint.toml', 'w') as file:
            file.write(f'store = "{store}"\n[queue.q]\n[job.j]\nschedule = "0 0 1 1 *"\ncommand = ["true"]\n')

    def stint(self, *words, **env):
        return subprocess.run([STINT, *words], cwd=self.repo, env={**self.env, **env}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=PATIENCE)

    def refused(self, words, **env):
        before = self.stranger.calls
        done = self.stint(*words, **env)
        self.assertEqual(done.returncode, 77, (words, done.stderr))
        self.assertIn(f'{self.repo}/stint.toml', done.stderr, words)
        self.assertEqual((self.stranger.calls, self.stranger.got), (before, b''), words)

    def test_the_table_has_every_command(self):
        told = re.search(r'\nCommands:\n(.*?)\n\n', self.stint('help').stdout, re.S).group(1)
        commands = {line.split()[0] for line in told.splitlines()}
        known = {words.split('-')[0] for words in [*READERS, *OTHERS]}
        self.assertEqual(commands, known)

    def test_no_command_shows_its_key_to_a_found_store(self):
        with open(f'{self.dir}/key', 'w') as file:
            file.write(KEY)
        by_file = {'STINT_KEY_FILE': f'{self.dir}/key'}
        self.say(f'do+http://127.0.0.1:{self.stranger.port}')
        self.refused(['slots', 'j'], STINT_KEY=KEY)
        self.refused(['slots', 'j'], **by_file)
        self.say(self.url)
        for env in ({'STINT_KEY': KEY}, by_file):
            for cases in READERS.values():
                for words in cases:
                    self.refused(words, **env)
            for cases in OTHERS.values():
                for words in cases:
                    self.stint(*words, **env)
                    self.assertEqual(self.stranger.calls, 0, words)

    def test_no_command_shows_a_password_to_a_found_store(self):
        self.say(f'postgres://me@127.0.0.1:{self.stranger.port}/db')
        passfile = f'{self.dir}/passes'
        with open(passfile, 'w') as file:
            file.write(f'*:*:*:*:{PASSWORD}\n')
        os.chmod(passfile, 0o600)
        for cases in READERS.values():
            for words in cases:
                self.refused(words, PGPASSWORD=PASSWORD)
        self.refused(['slots', 'j'], PGPASSFILE=passfile)
        os.rename(passfile, f'{self.dir}/.pgpass')
        self.refused(['slots', 'j'])
        self.say(f'postgres://me@127.0.0.1:{self.stranger.port}/db?passfile={self.dir}/.pgpass')
        self.refused(['slots', 'j'], HOME='/nonexistent')

    def test_a_found_store_is_used_where_nothing_secret_is_at_hand(self):
        self.say(f'sqlite:{self.dir}/here.db')
        self.assertEqual(self.stint('queue', 'put', 'q', 'x', STINT_KEY=KEY, PGPASSWORD=PASSWORD).returncode, 0)
        self.assertTrue(os.path.exists(f'{self.dir}/here.db'))
        self.say(self.url)
        self.stint('slots', 'j', PGPASSWORD=PASSWORD)
        self.assertGreater(self.stranger.calls, 0)
        self.assertNotIn(PASSWORD.encode(), self.stranger.got)

    def test_who_names_the_file_or_the_store_means_it(self):
        self.say(self.url)
        for words, env in ((['slots', 'j', '--file', 'stint.toml'], {}), (['cron', '--once', 'stint.toml'], {}),
                           (['slots', 'j', '--store', self.url], {}), (['slots', 'j'], {'STINT_STORE': self.url})):
            self.stranger.got = b''
            self.stint(*words, STINT_KEY=KEY, **env)
            self.assertIn(f'Bearer {KEY}'.encode(), self.stranger.got, words)

    def test_the_users_own_file_speaks_for_its_store_alone_and_says_how_it_is_asked(self):
        other = Stranger()
        self.addCleanup(other.close)
        with open(self.own, 'w') as file:
            file.write(f'store = "http://127.0.0.1:{other.port}"\n')
        self.say(self.url)
        self.refused(['slots', 'j'], STINT_KEY=KEY)
        # The same store, in other words of a stranger's: asked in the user's.
        self.say(f'http://127.0.0.1:{other.port}/?timeout=1ms')
        self.stint('slots', 'j', STINT_KEY=KEY)
        self.assertIn(f'Bearer {KEY}'.encode(), other.got)
        # Another scheme, another port, another name are other stores.
        for text in (f'https://127.0.0.1:{other.port}', f'http://localhost:{other.port}', 'http://127.0.0.1'):
            self.say(text)
            done = self.stint('slots', 'j', STINT_KEY=KEY)
            self.assertEqual(done.returncode, 77, (text, done.stderr))
        os.remove(self.own)
        other.got = b''
        self.say(f'http://127.0.0.1:{other.port}')
        self.refused(['slots', 'j'], STINT_KEY=KEY)
        self.say(f'http://127.0.0.1:{other.port}', f'{self.dir}/config/stint/stint.toml')
        self.stint('slots', 'j', STINT_KEY=KEY)
        self.assertIn(f'Bearer {KEY}'.encode(), other.got)

    def test_a_key_does_not_follow_a_redirect(self):
        for status in (301, 302, 303, 307, 308):
            answer = f'HTTP/1.1 {status} Elsewhere\r\nLocation: {self.url}/v1/store\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'
            sent = Stranger(answer.encode())
            done = self.stint('ls', STINT_STORE=f'http://127.0.0.1:{sent.port}', STINT_KEY=KEY)
            sent.close()
            self.assertEqual(done.returncode, 69, done.stderr)
            self.assertIn(KEY.encode(), sent.got)
            self.assertEqual(self.stranger.calls, 0, status)

    def test_a_proxy_on_the_way_to_https_is_shown_no_key(self):
        """Nor what answers in its name."""
        for answer in (b'HTTP/1.1 200 OK\r\n\r\n', b'HTTP/1.1 407 Who?\r\nContent-Length: 0\r\n\r\n',
                       f'HTTP/1.1 302 X\r\nLocation: {self.url}/\r\nContent-Length: 0\r\n\r\n'.encode()):
            proxy = Stranger(answer)
            done = self.stint('ls', STINT_STORE='https://store.invalid', STINT_KEY=KEY,
                              https_proxy=f'http://127.0.0.1:{proxy.port}')
            proxy.close()
            self.assertEqual(done.returncode, 69, done.stderr)
            self.assertIn(b'CONNECT store.invalid:443', proxy.got)
            self.assertNotIn(KEY.encode(), proxy.got)
            self.assertEqual(self.stranger.calls, 0)


if __name__ == '__main__':
    main()
