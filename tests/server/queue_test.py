"""Queues and schedules through a server: keys, prefixes and owners, waiting, the janitor, the command line, declared
queues, metrics."""
import json
import os
import re
import shutil
import subprocess
import threading

from harness import STINT, Client, Server, TestCase, claim, main, until


def lines(server, *words):
    return server.stint(*words, store=server.url).stdout.split()


class QueueKeys(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()
        cls.addClassCleanup(cls.server.__exit__)
        key = cls.server.key
        cls.a = cls.server.client(key('a', 'queue,read', '--prefix', 'a-'))
        cls.a2 = cls.server.client(key('a2', 'queue', '--prefix', 'a-'))
        cls.op = cls.server.client(key('op', 'operate,read'))
        cls.cron = cls.server.client(key('cron', 'schedule,acquire', '--prefix', 'a-'))
        until(lambda: cls.cron.get('/v1/store').json.get('key') == 'cron', 'the keys are known')

    def put(self, queue='a-q', **more):
        return self.a.post('/v1/queues/put', {'queue': queue, 'create': True, **more})

    def test_a_prefix_holds_for_queues_items_and_follow_ups(self):
        for path, body in (('put', {'queue': 'b-q', 'create': True}), ('claim', {'queue': 'b-q'}),
                           ('configure', {'queue': 'b-q', 'limits': {}}), ('tend', {'queue': 'b-q'}),
                           ('complete', {'id': 'b-q-' + 'a' * 20, 'epoch': 1})):
            answer = self.a.post(f'/v1/queues/{path}', body)
            self.assertEqual(answer.status, 403, (path, answer))
        self.put()
        item = self.a.post('/v1/queues/claim', {'queue': 'a-q'}).json['item']
        fan = {'id': item['id'], 'epoch': item['epoch'], 'then': [{'queue': 'b-q'}]}
        self.assertEqual(self.a.post('/v1/queues/complete', fan).status, 403)
        self.assertEqual(self.a.get(f'/v1/queues/item?id={item["id"]}').json['state'], 'claimed')
        for path in ('queue?queue=b-q', 'items?queue=b-q', 'item?id=b-q-' + 'a' * 20, 'watch?queue=b-q'):
            self.assertEqual(self.a.get(f'/v1/queues/{path}').status, 403, path)
        self.op.post('/v1/queues/drop', {'id': item['id'], 'epoch': item['epoch'], 'why': 'w'})

    def test_the_owner_is_the_key_and_an_epoch_is_no_leave_for_another(self):
        one = self.put(queue='a-own', by='x').json['id']
        item = self.a.post('/v1/queues/claim', {'queue': 'a-own', 'owner': 'run-1'}).json['item']
        self.assertEqual((item['id'], item['owner'], item['put_by']), (one, 'a/run-1', 'a/x'))
        ref = {'id': one, 'epoch': item['epoch']}
        for verb in ('start', 'renew', 'checkpoint', 'complete', 'fail', 'release'):
            self.assertEqual(self.a2.post(f'/v1/queues/{verb}', ref).status, 403, verb)
            self.assertEqual(self.a2.post(f'/v1/queues/{verb}', {**ref, 'epoch': 7}).status, 410, verb)
        self.assertEqual(self.a.get(f'/v1/queues/item?id={one}').json['state'], 'claimed')
        self.assertEqual(self.a.post('/v1/queues/park', {**ref, 'why': 'w'}).status, 403)
        parked = self.op.post('/v1/queues/park', {**ref, 'why': 'w', 'by': 'me'}).json
        self.assertEqual((parked['state'], parked['by']), ('parked', 'op/me'))
        self.assertEqual(self.a.post('/v1/queues/complete', ref).status, 410)

    # An answer that is longer than one record of the store is kept all the same: the order is not carried out again.
    def test_an_order_under_one_key_is_carried_out_once_however_long_its_answer(self):
        long = '"' * 400
        one = self.put(queue='a-once', unique='"' * 250, limits={'max_attempts': 1}).json['id']

        def fail():
            item = self.a.post('/v1/queues/claim', {'queue': 'a-once'}).json['item']
            ref = {'id': one, 'epoch': item['epoch']}
            self.assertEqual(self.a.post('/v1/queues/checkpoint', {**ref, 'marker': long}).status, 200)
            self.assertEqual(self.a.post('/v1/queues/fail', {**ref, 'why': 'bad'}).status, 200)

        fail()
        ask = lambda: self.op.post('/v1/queues/requeue', {'id': one, 'why': long}, headers={'Idempotency-Key': 'long'})
        first = ask()
        self.assertGreater(len(first.body), 2000)
        fail()
        again = ask()
        self.assertTrue(again.json['replayed'], again)
        moment = {'replayed': None, 'age_ms': None, 'store_time_ns': None}  # of the answer, not of what was done
        self.assertEqual({**again.json, **moment}, {**first.json, **moment})
        self.assertEqual(self.a.get(f'/v1/queues/item?id={one}').json['state'], 'failed')

    # Regression: put and claim replayed their answers without the age_ms that the document promises.
    def test_an_answer_that_is_given_again_says_so_and_how_old_it_is(self):
        for store in (None, 'dir:DIR/store'):
            with Server(store=store) as server:
                c = server.client()
                ask = lambda verb, body: c.post(f'/v1/queues/{verb}', body, headers={'Idempotency-Key': f'age-{verb}'})
                for verb, body, says in (('put', {'queue': 'q', 'payload': 'x', 'create': True}, 'replayed'),
                                         ('claim', {'queue': 'q', 'owner': 'o', 'claim': claim(), 'ttl_ms': 60_000}, 'replayed'),
                                         ('complete', {'epoch': 1}, 'repeated')):
                    body = {**body, 'id': item} if verb == 'complete' else body
                    first, again = ask(verb, body), ask(verb, body)
                    self.assertEqual((first.status, again.status), (200, 200), (verb, first, again))
                    self.assertEqual((first.json[says], again.json[says]), (False, True), (verb, again))
                    self.assertNotIn('age_ms', first.json)
                    if verb != 'complete' or store is None:
                        self.assertGreaterEqual(again.json['age_ms'], 0, verb)
                    item = first.json.get('id') or first.json['item']['id']

    def test_a_job_in_a_far_time_or_with_a_bad_name_is_refused_and_the_server_lives(self):
        rule = {'name': 'a-far', 'schedule': '* * * * *', 'loaded_at_ms': 0}
        for at in (9 * 10 ** 17, -9 * 10 ** 17, 4 * 10 ** 12):
            answer = self.cron.post('/v1/jobs/add', {'rule': rule, 'slot': {'at_ms': at}})
            self.assertIn(answer.status, (400, 422), (at, answer))
        for name in ('a-x@y', 'a-x\ny', 'a-' + 'x' * 300):
            answer = self.cron.post('/v1/jobs/add', {'rule': {**rule, 'name': name}})
            self.assertIn(answer.status, (400, 422), (name, answer))
        self.assertEqual(self.cron.get('/v1/store').status, 200)

    def test_jobs_are_behind_their_prefix_too(self):
        rule = {'name': 'b-job', 'schedule': '@daily', 'loaded_at_ms': 1}
        self.assertEqual(self.cron.post('/v1/jobs/decide', {'scheduler': 's', 'asks': [{'rule': rule}]}).status, 403)
        self.assertEqual(self.cron.post('/v1/jobs/decide', {'scheduler': 's', 'asks': [{'rule': {**rule, 'name': 'a-job'}}]}).status, 200)
        self.assertEqual(self.a.post('/v1/jobs/pause', {'job': 'a-job'}).status, 403)
        self.assertEqual(self.op.post('/v1/jobs/pause', {'job': 'a-job'}).status, 200)
        self.assertEqual([job['job'] for job in self.op.get('/v1/jobs').json['jobs']], ['a-job'])

    def test_bad_input_changes_nothing(self):
        self.put(queue='a-bad')
        post = lambda verb, body: self.a.post(f'/v1/queues/{verb}', body).status
        self.assertEqual(post('put', {'queue': 'a-none'}), 400)
        self.assertEqual(post('put', {'queue': 'a-bad', 'payload': 'x' * 65_537}), 400)
        self.assertEqual(post('put', {'queue': 'a-bad', 'payload': 'x', 'payload_base64': 'eA=='}), 400)
        self.assertEqual(post('put', {'queue': 'a-bad', 'payload_base64': 'no'}), 400)
        self.assertEqual(post('put', {'queue': 'a-bad', 'priority': 101}), 400)
        self.assertEqual(post('put', {'queue': 'a-bad', 'labels': 'l'}), 400)
        self.assertEqual(post('put', {'queue': 'a-bad', 'limits': {'max_attempts': 0}}), 400)
        self.assertEqual(post('claim', {'queue': 'a-bad', 'wait_ms': 10**9}), 400)
        self.assertEqual(post('complete', {'id': 'a-bad', 'epoch': 1}), 400)
        self.assertEqual(post('renew', {'id': 'a-bad-' + 'a' * 20, 'epoch': 0}), 400)
        self.assertEqual(self.a.get('/v1/queues/queue?queue=a-bad').json['waiting'], 1)


class QueueServer(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()
        cls.addClassCleanup(cls.server.__exit__)

    def setUp(self):
        self.c = self.server.client()

    def put(self, queue, payload='', **more):
        return self.c.post('/v1/queues/put', {'queue': queue, 'payload': payload, 'create': True, **more}).json['id']

    def test_a_claim_waits_and_whoever_puts_wakes_it(self):
        self.c.post('/v1/queues/configure', {'queue': 'wait', 'limits': {}})
        got = []

        def wait(i):
            c = Client(self.server.port)
            got.append(c.post('/v1/queues/claim', {'queue': 'wait', 'owner': f'w{i}', 'wait_ms': 60_000}).json['item']['id'])
            c.close()
        threads = [threading.Thread(target=wait, args=(i,)) for i in range(3)]
        for thread in threads:
            thread.start()
        ids = [self.put('wait') for _ in threads]
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(got), sorted(ids))

    def test_a_wait_ends_and_who_vanishes_gives_the_item_back(self):
        self.c.post('/v1/queues/configure', {'queue': 'gone', 'limits': {}})
        self.assertIsNone(self.c.post('/v1/queues/claim', {'queue': 'gone', 'owner': 'w', 'wait_ms': 50}).json['item'])
        vanishing = Client(self.server.port)
        vanishing.conn.request('POST', '/v1/queues/claim', json.dumps({'queue': 'gone', 'owner': 'v', 'wait_ms': 60_000}))
        vanishing.close()
        one = self.put('gone')
        mine = until(lambda: self.c.post('/v1/queues/claim', {'queue': 'gone', 'owner': 'w'}).json['item'], 'it is given back')
        self.assertEqual(mine['id'], one)

    # EVIDENCE-OF: G8
    def test_the_server_is_a_janitor(self):
        """Nobody claims and nobody works: the server settles what ran out."""
        again = self.put('tended', limits={'requeue': 'always'})
        parked = self.put('tended2', limits={'requeue': 'never'})
        for queue in ('tended', 'tended2'):
            self.c.post('/v1/queues/claim', {'queue': queue, 'owner': 'w', 'ttl_ms': 1000, 'start': True})
        state = lambda one: self.c.get(f'/v1/queues/item?id={one}').json['state']
        until(lambda: state(again) == 'waiting', 'it is to be claimed again')
        until(lambda: state(parked) == 'parked', 'it is parked')

    def test_a_claim_that_starts_later_is_not_stalled_before(self):
        one, other = (self.put('later', limits={'progress_timeout_ms': 300, 'requeue': 'always'}) for _ in range(2))
        bid = {'queue': 'later', 'owner': 'w', 'ttl_ms': 60_000}
        self.assertEqual(self.c.post('/v1/queues/claim', {**bid, 'starts_later': True}).json['item']['id'], one)
        self.assertEqual(self.c.post('/v1/queues/claim', bid).json['item']['id'], other)
        item = lambda one: self.c.get(f'/v1/queues/item?id={one}').json
        until(lambda: item(other)['state'] == 'waiting', 'the one that said nothing of a start has stalled')
        self.assertEqual((item(one)['state'], item(one)['epoch'], item(one)['live']), ('claimed', 1, True))
        self.c.post('/v1/queues/start', {'id': one, 'epoch': 1})
        until(lambda: item(one)['state'] == 'waiting', 'it has started, and stalled')

    def test_pages_are_whole(self):
        ids = {self.put('pages', str(i)) for i in range(7)}
        first = self.c.post('/v1/queues/claim', {'queue': 'pages', 'owner': 'w'}).json['item']['id']
        seen, after = [], ''
        while True:
            page = self.c.get(f'/v1/queues/items?queue=pages&limit=2&after={after}').json
            seen += [item['id'] for item in page['items']]
            if 'next' not in page:
                break
            after = page['next']
        self.assertEqual(seen[0], first)
        self.assertEqual((len(seen), set(seen)), (7, ids))
        self.assertEqual(self.c.get('/v1/queues/items?queue=pages&after=nonsense').status, 400)
        row = next(one for one in self.c.get('/v1/queues').json['queues'] if one['queue'] == 'pages')
        self.assertEqual((row['ready'], row['waiting'], row['claimed'], row['done']), (6, 6, 1, 0))
        self.assertGreaterEqual(row['oldest_ms'], 0)

    def test_metrics(self):
        self.put('counted')
        text = self.c.get('/metrics').body.decode()
        self.assertIn('stint_queue_items{queue="counted",state="ready"} 1\n', text)
        for name in ('puts', 'claims', 'completions', 'stale_refused', 'parked'):
            self.assertIn(f'# TYPE stint_queue_{name}_total counter', text)
        self.assertIn('stint_queue_oldest_seconds{queue="counted"} ', text)
        self.assertIn('stint_scheduled_skipped_overlap_total ', text)
        self.assertTrue(shutil.which('promtool'), 'tools/setup.sh tests installs it')
        done = subprocess.run(['promtool', 'check', 'metrics'], input=text, text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_repeated_end_of_an_item_is_answered_as_the_first_time(self):
        c = self.server.client()
        long = 'n' * 100
        keyed = lambda key: {'Idempotency-Key': key}
        self.assertEqual(c.post('/v1/queues/put', {'queue': long, 'create': True}).status, 200)

        def claimed(queue):
            self.assertEqual(c.post('/v1/queues/put', {'queue': queue, 'create': True}).status, 200)
            got = c.post('/v1/queues/claim', {'queue': queue, 'owner': 'w', 'ttl_ms': 60_000}).json['item']
            return {'id': got['id'], 'epoch': got['epoch']}
        # Fifty names of a hundred bytes do not fit into a record as they are.
        done = {**claimed('repeats'), 'then': [{'queue': long, 'payload': str(i)} for i in range(50)]}
        first = c.post('/v1/queues/complete', done, headers=keyed('fifty'))
        self.assertEqual(len(first.json['follow_ups']), 50, first)
        again = c.post('/v1/queues/complete', done, headers=keyed('fifty'))
        self.assertEqual((again.status, again.json['repeated'], again.json['follow_ups']), (200, True, first.json['follow_ups']))
        # Given back, and claimed by another since.
        for verb, more in (('release', {}), ('fail', {'why': 'w'})):
            end = {**claimed(f'repeats-{verb}'), **more}
            told = c.post(f'/v1/queues/{verb}', end, headers=keyed(f'end-{verb}'))
            self.assertEqual(told.status, 200, told)

            def moved_on():
                return c.post('/v1/queues/claim', {'queue': f'repeats-{verb}', 'owner': 'x', 'ttl_ms': 60_000}).json.get('item')
            until(moved_on, 'it is claimed again')
            twice = c.post(f'/v1/queues/{verb}', end, headers=keyed(f'end-{verb}'))
            self.assertEqual((twice.status, twice.json.get('replayed')), (200, True), twice)
            self.assertEqual(c.post(f'/v1/queues/{verb}', end).status, 410, 'without the key it is decided anew')

    def test_stale_writes_are_counted_by_their_guard_and_nothing_else_is(self):
        c = self.server.client()

        def told(target, cause):
            event = {'at_ms': 1, 'kind': 'write_refused', 'resource': 'r', 'token': 1, 'owner': 'o', 'target': target, 'cause': cause}
            self.assertEqual(c.post('/v1/events', {'event': event, 'target': f'{cause} {target}'}).status, 200)
        for target, cause in (('file:/a:b', 'stale'), ('dir:/d', 'stale'), ('git:/r#main', 'stale'), ('git:/r#main', 'stale'),
                              ('file:/a', 'no_token'), ('proxy:http://h', 'foreign'), ('odd"}', 'stale'), ('admit:x', 'stale')):
            told(target, cause)
        text = c.get('/metrics').body.decode()
        found = dict(re.findall(r'^stint_stale_writes_refused_total{guard="([^"]*)"} (\d+)', text, re.M))
        self.assertEqual(found, {'file': '1', 'dir': '1', 'git': '2', 'postgres': '0', 'proxy': '0', 'store': '0', 'other': '1'})

    def test_the_rules_and_the_dashboard_that_are_handed_out_can_be_read(self):
        there = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../packaging/monitoring')
        done = subprocess.run(['promtool', 'check', 'rules', f'{there}/alerts.yml'], text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(f'{there}/grafana.json') as file:
            dashboard = json.load(file)
        # What they ask for is there from the start.
        text = self.server.client().get('/metrics').body.decode()
        with open(f'{there}/alerts.yml') as file:
            asked = set(re.findall(r'\bstint_[a-z_]+', json.dumps(dashboard) + file.read()))
        told = set(re.findall(r'^(stint_[a-z_]+)', text, re.M)) | set(re.findall(r'^# TYPE (stint_[a-z_]+)', text, re.M))
        self.assertEqual(asked - told, set())

    def test_the_command_line_works_through_it(self):
        server, here = self.server, self.server.dir
        (one,) = lines(server, 'queue', 'put', 'cli', 'hello', '--create')
        server.stint('work', 'cli', '--until-empty', '--', 'sh', '-c',
                     f'cat > {here}/payload; stint() {{ "{STINT}" "$@"; }}; stint queue checkpoint --data {here}/payload && stint progress half',
                     store=server.url)
        with open(f'{here}/payload') as file:
            self.assertEqual(file.read(), 'hello')
        item = json.loads(server.stint('queue', 'show', one, '--json', store=server.url).stdout)
        self.assertEqual((item['state'], item['progress'], item['checkpoint']), ('done', 'half', 'hello'))
        self.assertEqual(json.loads(server.stint('queue', 'ls', 'cli', '--json', store=server.url).stdout)[0]['id'], one)
        # Jobs, their slots, and once.
        with open(f'{here}/stint.toml', 'w') as file:
            file.write(f'[job.tick]\nschedule = "@yearly"\ncommand = ["touch", "{here}/ticked"]\n')
        (slot,) = lines(server, 'cron', 'trigger', 'tick', '--file', f'{here}/stint.toml')
        server.stint('cron', f'{here}/stint.toml', '--once', store=server.url)
        self.assertTrue(os.path.exists(f'{here}/ticked'))
        slots = json.loads(server.stint('slots', 'tick', '--json', '--file', f'{here}/stint.toml', store=server.url).stdout)
        self.assertEqual([(row['key'], row['state']) for row in slots], [(slot, 'ran')])
        for _ in range(2):
            server.stint('once', 'the-key', '--', 'sh', '-c', f'echo x >> {here}/once', store=server.url)
        with open(f'{here}/once') as file:
            self.assertEqual(file.read(), 'x\n')


class Declared(TestCase):
    def test_queues_of_the_configuration_are_there_and_follow_it(self):
        with Server() as server:
            path = f'{server.dir}/serve.toml'

            def write(attempts):
                with open(path, 'w') as file:
                    file.write(f'store = "{server.store}"\n[queue.builds]\nmax_attempts = {attempts}\nttl = "5m"\nrequeue = "never"\n')
            write(7)
            for attempts in (7, 2):
                write(attempts)
                with Server('--config', path, store=server.store, directory=server.dir) as other:
                    limits = other.client().get('/v1/queues/queue?queue=builds').json['limits']
                    self.assertEqual((limits['max_attempts'], limits['claim_ttl_ms'], limits['requeue']), (attempts, 300_000, 'never'))
                    item = other.client().post('/v1/queues/put', {'queue': 'builds'}).json['id']
                    self.assertEqual(other.client().get(f'/v1/queues/item?id={item}').json['limits']['max_attempts'], attempts)

    def test_by_who_puts_and_works_and_wrong_ones_are_told_with_their_place(self):
        with Server() as server:
            os.makedirs(f'{server.dir}/config/stint')
            path = f'{server.dir}/config/stint/config.toml'
            with open(path, 'w') as file:
                file.write('[queue.posts]\nmax_attempts = 1\n')
            item = server.stint('queue', 'put', 'posts', 'x', store=server.url).stdout.strip()
            self.assertEqual(server.client().get(f'/v1/queues/item?id={item}').json['limits']['max_attempts'], 1)
            self.assertEqual(server.stint('queue', 'put', 'others', 'x', store=server.url, check=False).returncode, 2)
            for text, place in (('[queue.posts]\nmax_attempts = 0\n', ':2:16: '), ('[queue.posts]\ntries = 3\n', ':2:9: '),
                                ('[queue."no spaces"]\n', ':1:8: '), ('[queue.posts]\nttl = "5"\n', ':2:7: ')):
                with open(path, 'w') as file:
                    file.write(text)
                done = server.stint('queue', 'put', 'posts', 'x', store=server.url, check=False)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(path + place, done.stderr)


if __name__ == '__main__':
    main()
