"""What a key must not be able to do in the name of others: plant targets, take names, write history."""
import os
import time

from harness import STINT, Server, TestCase, main, until


class Forging(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()
        cls.addClassCleanup(cls.server.__exit__)
        cls.keys = {name: cls.server.key(name, allow, *more) for name, allow, *more in (
            ('root', 'read,acquire,admit,queue,operate,admin'), ('ann', 'acquire,read'), ('bob', 'acquire,read'),
            ('guard', 'admit'), ('ops', 'operate,acquire'), ('reader', 'read'),
            ('small', 'admin,read,acquire', '--prefix', 'team-a/'))}
        for name, key in cls.keys.items():
            client = cls.server.client(key)
            setattr(cls, name, client)
            until(lambda: client.get('/v1/store').status == 200, 'the key is known')

    def offer(self, granted):
        return {name: granted[name] for name in ('resource', 'token', 'generation')}

    def remembered(self, resource):
        return self.root.get(f'/v1/fences/sealed?resource={resource}').json['targets']

    # Regression: any key that may acquire could have files made on the machine of the next holder.
    def test_only_the_holder_says_what_its_holder_sealed(self):
        offer = self.offer(self.ann.acquire('plant/a').json)
        plant = {'targets': ['file:/any/dir/x'], 'offer': offer}
        for other in (self.bob, self.guard):
            answer = other.post('/v1/fences/remember', plant)
            self.assertEqual((answer.status, answer.code), (403, 'denied'))
            self.assertIn('no run of the key', answer.json['error']['message'])
        # Nor for a token that the holder would get next.
        ahead = self.bob.post('/v1/fences/remember', {**plant, 'offer': {**offer, 'token': offer['token'] + 1}})
        self.assertEqual((ahead.status, ahead.code), (403, 'never_issued'))
        self.assertEqual(self.remembered('plant/a'), [])
        self.assertEqual(self.ann.post('/v1/fences/remember', plant).status, 200)
        self.assertEqual(self.ops.post('/v1/fences/remember', {**plant, 'targets': ['dir:/b']}).status, 200)
        self.assertEqual(self.remembered('plant/a'), ['dir:/b', 'file:/any/dir/x'])
        # Who had it before is told that it is over, not that it never was.
        self.ops.post('/v1/revoke', {'resource': 'plant/a', 'token': offer['token'], 'why': 'w', 'by': 'b'})
        self.assertEqual(self.ann.post('/v1/fences/remember', plant).code, 'stale')

    def test_a_target_is_remembered_in_the_words_of_the_command_line(self):
        offer = self.offer(self.ann.acquire('plant/words').json)
        for words in ('garbage', 'file:relative', 'file:/a/../b', 'file:/a//b', 'file:/a/', 'dir:/', 'git:ext::sh -c id#main',
                      'git:origin/main', 'git:relative#main', 'postgres://u:s3cr3tpw@h/d#r', 'postgres://h/d',
                      'proxy:http://u:s3cr3tpw@h', 'git:https://u:s3cr3tpw@h/x#main', ''):
            answer = self.ann.post('/v1/fences/remember', {'targets': ['file:/fine', words], 'offer': offer})
            self.assertEqual((answer.status, answer.code), (400, 'invalid'), words)
            self.assertNotIn(b's3cr3tpw', answer.body)
        self.assertEqual(self.remembered('plant/words'), [])
        fine = ['admit:deploy', 'dir:/a', 'file:/a/b', 'git:/srv/x.git#refs/heads/main', 'git:git@h:x.git#refs/heads/main',
                'git:ssh://git@[::1]/x#refs/heads/main', 'postgres://u@h/d#r', 'proxy:http://h:80']
        self.assertEqual(self.ann.post('/v1/fences/remember', {'targets': fine, 'offer': offer}).status, 200)
        self.assertEqual(self.remembered('plant/words'), fine)

    def test_a_holder_seals_and_writes_through_the_server(self):
        there, key = f'{self.server.dir}/written', self.keys['ann']
        os.makedirs(there, exist_ok=True)
        self.server.stint('run', 'plant/run', '--seal', f'file:{there}/a', '--', 'sh', '-c',
                          f'echo x | "$0" write {there}/a && "$0" seal dir:{there}/d && echo y | "$0" write {there}/b',
                          os.path.abspath(STINT), store=self.server.url, key=key)
        self.assertEqual(self.remembered('plant/run'), [f'dir:{there}/d', f'file:{there}/a', f'file:{there}/b'])

    def test_who_may_acquire_may_forget_and_is_on_record_with_the_reason(self):
        offer = self.offer(self.ann.acquire('plant/forget').json)
        self.ann.post('/v1/fences/remember', {'targets': ['file:/typo'], 'offer': offer})
        asked = {'resource': 'plant/forget', 'target': 'file:/typo', 'why': 'a typo', 'by': 'root'}
        for other in (self.reader, self.guard, self.small):
            self.assertEqual(other.post('/v1/fences/forget', asked).status, 403)
        self.assertEqual(self.bob.post('/v1/fences/forget', {**asked, 'why': 'two\nlines'}).status, 400)
        self.assertEqual(self.bob.post('/v1/fences/forget', asked).status, 200)
        self.assertEqual(self.bob.post('/v1/fences/forget', asked).status, 200, 'again')
        self.assertEqual(self.remembered('plant/forget'), [])
        events = self.root.get('/v1/events?prefix=plant/forget&limit=1000').json['events']
        told = [one for one in events if one['kind'] == 'target_forgotten']
        self.assertEqual([(one['by'], one['why'], one['target']) for one in told], [('bob/root', 'a typo', 'file:/typo')])

    def test_targets_that_are_gone_stop_nobody_through_the_server(self):
        there, key = f'{self.server.dir}/gone', self.keys['ann']
        os.makedirs(there, exist_ok=True)
        run = lambda *words: self.server.stint('run', 'plant/gone', *words, store=self.server.url, key=key)
        run('--seal', f'file:{there}/page', '--', 'rm', '-r', there)
        word = self.root.get('/v1/fences/word?resource=plant/gone').json['targets'][0]
        self.assertEqual((word['sealed'], word['token'], word['first_token']), (True, 1, 1))
        self.assertLess(abs(word['at_ms'] / 1000 - time.time()), 60)
        run('--', 'mkdir', there)
        run('--', 'true')
        run('--or', 'plant/other', '--seal', 'plant/other=admit:x', '--', 'true')
        kinds = [one['kind'] for one in self.root.get('/v1/events?prefix=plant/gone&limit=1000').json['events']]
        self.assertIn('target_absent', kinds)
        self.assertIn('fence_made_anew', kinds)
        self.assertTrue(os.path.exists(f'{there}/.page.fence.4'))

    # Regression: an admin key of one team could revoke every key, take any name, and list all.
    def test_an_admin_with_prefixes_has_to_do_with_keys_within_them(self):
        mine = {'name': 'a-worker', 'allow': ['read'], 'prefixes': ['team-a/x']}
        made = self.small.post('/v1/keys', mine)
        self.assertEqual(made.status, 200, made)
        self.assertEqual({one['name'] for one in self.small.get('/v1/keys').json['keys']}, {'small', 'a-worker'})
        ids = {one['name']: one['id'] for one in self.root.get('/v1/keys').json['keys']}
        wide = self.root.post('/v1/keys', {'name': 'both', 'allow': ['read'], 'prefixes': ['team-a/', 'team-b/']}).json
        for which in ('root', ids['root'], 'ann', wide['name'], wide['id']):
            answer = self.small.post('/v1/keys/revoke', {'key': which})
            self.assertEqual((answer.status, answer.code), (403, 'denied'), which)
        self.assertEqual(self.root.get('/v1/store').status, 200)
        # A name is somebody: neither that of another, nor one's own twice.
        self.root.post('/v1/keys/revoke', {'key': 'both'})
        for name in ('root', 'ann', 'small', 'a-worker', 'both'):
            answer = self.small.post('/v1/keys', {**mine, 'name': name})
            self.assertEqual((answer.status, answer.code), (403, 'denied'), name)
        self.assertEqual(self.small.post('/v1/keys/revoke', {'key': 'nobody'}).status, 400)
        self.assertEqual(self.small.post('/v1/keys/revoke', {'key': 'a-worker'}).status, 200)
        self.assertEqual(self.small.post('/v1/keys', mine).status, 200)
        # Who reaches everything replaces a key by a second one of its name.
        self.assertEqual(self.root.post('/v1/keys', {'name': 'bob', 'allow': ['read']}).status, 200)

    def told(self, client, **event):
        return client.post('/v1/events', {'event': {'resource': 'told/a', 'owner': 'o', **event}})

    def lines(self, kind):
        return [one for one in self.root.get('/v1/events?limit=1000&newest=true').json['events'] if one['kind'] == kind]

    # Regression: a key that may only acquire could write "revoked by root" into the ledger.
    def test_the_ledger_cannot_be_forged(self):
        kinds = ('granted', 'released', 'expired', 'transferred', 'revoked', 'recovered', 'reserved', 'moved', 'prolonged', 'tail_may_be_lost',
                 'key_created', 'key_revoked', 'refused_held', 'item_claimed', 'item_completed', 'slot_ended', 'made_up')
        for client in (self.ann, self.guard):
            for kind in kinds:
                answer = self.told(client, kind=kind, by='root', why='forged')
                self.assertEqual((answer.status, answer.code), (400, 'invalid'), kind)
        self.assertNotIn(b'forged', self.root.get('/v1/events?limit=1000&newest=true').body)
        for kind in ('skipped_held', 'run_measured', 'run_stalled', 'run_stopped', 'store_clock_stepped', 'write_refused',
                     'write_would_be_refused', 'target_adopted', 'config_differs', 'clock_differs', 'note', 'note_7'):
            self.assertEqual(self.told(self.ann, kind=kind).status, 200, kind)
        self.assertEqual(self.told(self.ann, kind='target_forgotten').status, 403)
        self.assertEqual(self.told(self.ops, kind='target_forgotten').status, 200)

    def test_an_event_is_signed_and_dated_by_the_server(self):
        for number, at in enumerate((None, 1, 4_102_444_800_000)):
            said = {} if at is None else {'at_ms': at}
            self.assertEqual(self.told(self.ann, kind=f'note_at_{number}', by='root', key='root', **said).status, 200)
            line, = self.lines(f'note_at_{number}')
            self.assertLess(abs(line['at_ms'] - time.time() * 1000), 300_000)
            self.assertEqual((line['by'], line['key'], line['owner']), ('ann/root', 'ann', 'ann/o'))
        soon = int(time.time() * 1000) - 60_000
        self.assertEqual(self.told(self.ann, kind='note_soon', by='ann', at_ms=soon).status, 200)
        line, = self.lines('note_soon')
        self.assertEqual((line['at_ms'], line['by']), (soon, 'ann'))

    # Regression: a position that nobody understood was waited at for ever.
    def test_where_to_go_on_is_understood_or_refused(self):
        self.told(self.ann, kind='note_position')
        number = self.lines('note_position')[0]['number']
        for wrong in ('garbage', '5', number + 'x', '-' + number, number * 3):
            self.assertEqual(self.root.get(f'/v1/events?after={wrong}').status, 400, wrong)
            stream = self.root.get('/v1/events', headers={'Accept': 'text/event-stream', 'Last-Event-ID': wrong})
            self.assertEqual((stream.status, stream.code), (400, 'invalid'), wrong)
        for headers in ({}, {'Accept': 'text/event-stream'}):
            self.assertEqual(self.root.get('/v1/events?newest=x', headers=headers).status, 400)
        self.assertEqual(self.root.get(f'/v1/events?after={number}').status, 200)
        self.assertEqual(self.root.get('/v1/events?newest=false').status, 200)

    def test_who_may_only_look_is_shown_no_hash_of_a_claim(self):
        self.ann.acquire('hash/a')
        shown = {client.key: client.get('/v1/fences/word?resource=hash/a').json['claim_hash']
                 for client in (self.reader, self.ann, self.guard)}
        self.assertEqual(shown.pop(self.reader.key), '')
        self.assertNotIn('', shown.values())


if __name__ == '__main__':
    main()
