"""The server is away at the moment at which work ends: its end is told again until it is heard."""
import os
import subprocess

from harness import STINT, Server, TestCase, main, until

JOBS = """
[job.j]
schedule = "0 0 1 1 *"
command = ["sh", "-c", "{script}"]
ttl = "5m"
"""


class Telling(TestCase):
    def away(self, server, words, signals=0):
        """Runs `words` while the server is killed; their end comes before it is back. What was said."""
        where = server.dir
        with open(f'{where}/said', 'w') as err:
            run = subprocess.Popen([STINT, *words], env={**server.env, 'STINT_STORE': server.url}, cwd=where,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err)

        def said():
            with open(f'{where}/said') as file:
                return file.read()
        try:
            until(lambda: os.path.exists(f'{where}/began') or run.poll() is not None, 'it began')
            self.assertIsNone(run.poll(), said())
            server.kill()
            open(f'{where}/end', 'w').close()
            until(lambda: 'told again' in said() or run.poll() is not None, 'it is told again')
            self.assertIsNone(run.poll(), said())
            for one in range(signals):
                run.terminate()
                if one == 0:
                    until(lambda: 'a second signal' in said(), 'the first signal is told')
            if signals < 2:
                server.start()
            run.wait(60)
        finally:
            run.kill()
            run.wait()
        return run.returncode, said()

    @staticmethod
    def script(server):
        return f'touch {server.dir}/began; while [ ! -e {server.dir}/end ]; do sleep 0.05; done'

    def test_once(self):
        with Server() as server:
            code, said = self.away(server, ['once', 'k', '--ttl', '5m', '--', 'sh', '-c', self.script(server)])
            self.assertEqual(code, 0, said)
            self.assertEqual(server.client().get('/v1/once?key=k').json['state'], 'done')

    def test_a_slot(self):
        with Server() as server:
            with open(f'{server.dir}/stint.toml', 'w') as jobs:
                jobs.write(JOBS.format(script=self.script(server)))
            words = ['cron', 'run', 'j', '--slot', '2026-01-01T00:00:00Z']
            code, said = self.away(server, words)
            self.assertEqual(code, 0, said)
            slots = server.client().get('/v1/jobs/slots?job=j&limit=10').json['slots']
            self.assertEqual([one['state'] for one in slots], ['ran'], said)

    def test_an_item(self):
        with Server() as server:
            item = server.stint('queue', 'put', 'q', 'x', '--create', store=server.url).stdout.strip()
            words = ['work', 'q', '--until-empty', '--ttl', '5m', '--', 'sh', '-c', self.script(server)]
            code, said = self.away(server, words, signals=1)
            self.assertEqual(code, 0, said)
            self.assertEqual(server.client().get(f'/v1/queues/item?id={item}').json['state'], 'done')

    def test_a_second_signal_ends_it(self):
        with Server() as server:
            code, said = self.away(server, ['once', 'k', '--ttl', '5m', '--', 'sh', '-c', self.script(server)], signals=2)
            self.assertIn('could not be recorded', said)
            self.assertEqual(code, 0, said)  # the command's own


if __name__ == '__main__':
    main()
