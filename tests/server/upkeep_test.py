"""A log: store whose upkeep fails under a running server: said once, told by the doctor, and its end said once."""
import os
import socket
import tempfile

from harness import Server, TestCase, main, until

TROUBLE = 'warning, the store has trouble: a snapshot, or room for the log, was not made'
WELL = 'the store has no trouble any more'


class Upkeep(TestCase):
    def commits_until(self, client, condition, what):
        # The upkeep is called for by commits.
        def again():
            taken = client.acquire('r')
            self.assertEqual(taken.status, 200, taken)
            given = client.post('/v1/release', {'resource': 'r', 'owner': 'ann', 'claim': taken.claim,
                                                'token': taken.json['token']})
            self.assertEqual(given.status, 200, given)
            return condition()
        return until(again, what)

    def snapshot_finding(self, client):
        client.post('/v1/doctor')
        told = until(lambda: not (seen := client.get('/v1/doctor').json)['running'] and seen, 'the doctor is done')
        return [one for one in told['findings'] if one['check'] == 'snapshot']

    def test_trouble_is_said_once_and_so_is_its_end(self):
        with Server(store='log:DIR/log?segment_kb=1024&snapshot_kb=64') as server:
            client = server.client()
            # A name that cannot be used, as on a disk that is full.
            blocked = f'{server.dir}/log/snapshot.new'
            os.mkdir(blocked)
            self.commits_until(client, lambda: TROUBLE in server.text(), 'the server warns')
            self.assertEqual(client.get('/readyz').status, 200, 'commits go on')
            self.assertNotIn(WELL, server.text())
            found = self.snapshot_finding(client)
            self.assertEqual([one['level'] for one in found], ['warn'], found)
            # It is tried again and again meanwhile, and said no second time.
            before = os.stat(f'{server.dir}/log/snapshot').st_mtime_ns
            os.rmdir(blocked)
            self.commits_until(client, lambda: WELL in server.text(), 'the server says that it is well')
            self.assertGreater(os.stat(f'{server.dir}/log/snapshot').st_mtime_ns, before)
            self.assertEqual(server.text().count('warning, the store has trouble'), 1, server.text())
            self.assertEqual(server.text().count(WELL), 1, server.text())


class Notices(TestCase):
    def test_the_service_manager_is_told_of_its_beginning_and_its_end(self):
        with tempfile.TemporaryDirectory(prefix='stint-notify-') as here, \
                socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(f'{here}/notify')
            manager.settimeout(60)
            with Server(env={'NOTIFY_SOCKET': f'{here}/notify'}) as server:
                self.assertEqual(manager.recv(1000), b'READY=1')
                self.assertEqual(server.client().get('/healthz').status, 200)
                self.assertEqual(manager.recv(1000), b'WATCHDOG=1')
                self.assertEqual(server.stop(), 0)
                until(lambda: manager.recv(1000) == b'STOPPING=1', 'its end is told')


if __name__ == '__main__':
    main()
