"""What a page in somebody's browser, a name with odd letters or a key of small reach must not be able to do."""
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


if __name__ == '__main__':
    main()
