"""What a key must not be able to do in the name of others: plant targets, take names, write history."""
import os

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


if __name__ == '__main__':
    main()
