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


if __name__ == '__main__':
    main()
