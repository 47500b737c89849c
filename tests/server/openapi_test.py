"""The document at /v1/openapi.json against what the server really does: every answer that it describes occurs, as it
describes it, and no other does."""
import json
import socket

from harness import Client, Server, TestCase, claim, main, until


class Document:
    def __init__(self, text):
        self.whole = json.loads(text)
        self.operations = {(method.upper(), path): operation for path, item in self.whole['paths'].items()
                           for method, operation in item.items()}
        self.seen = set()

    def schema_of(self, schema):
        while '$ref' in schema:
            node = self.whole
            for part in schema['$ref'][2:].split('/'):
                node = node[part]
            schema = node
        return schema

    def wrong(self, schema, value, where='$'):
        """What does not fit; empty: all fits."""
        schema = self.schema_of(schema)
        out = []
        if 'oneOf' in schema:
            fits = [one for one in schema['oneOf'] if not self.wrong(one, value, where)]
            if len(fits) != 1:
                out.append(f'{where}: fits {len(fits)} of oneOf')
        for one in schema.get('allOf', []):
            out += self.wrong(one, value, where)
        if 'enum' in schema and value not in schema['enum']:
            out.append(f'{where}: {value!r} is none of {schema["enum"]}')
        kinds = {'object': dict, 'array': list, 'string': str, 'integer': int, 'boolean': bool, 'null': type(None)}
        if 'type' in schema:
            types = schema['type'] if isinstance(schema['type'], list) else [schema['type']]
            fits = any(isinstance(value, kinds[t]) and not (t == 'integer' and isinstance(value, bool)) for t in types)
            if not fits:
                return out + [f'{where}: {value!r} is not {types}']
        if isinstance(value, dict):
            for name in schema.get('required', []):
                if name not in value:
                    out.append(f'{where}: {name} is missing')
            for name, inner in value.items():
                if name in schema.get('properties', {}):
                    out += self.wrong(schema['properties'][name], inner, f'{where}.{name}')
                elif schema.get('additionalProperties') is False:
                    out.append(f'{where}: {name} is not described')
        if isinstance(value, list) and 'items' in schema:
            for i, inner in enumerate(value):
                out += self.wrong(schema['items'], inner, f'{where}[{i}]')
        return out

    def take(self, method, path, sent, answer):
        """An answer of the server: is it described, and as it is?"""
        operation = self.operations[(method, path)]
        described = operation['responses'].get(str(answer.status))
        assert described, f'{method} {path} answers {answer.status}, which is not described: {answer}'
        kind = answer.headers['content-type'].split(';')[0]
        assert kind in described['content'], f'{method} {path} {answer.status}: {kind}'
        if kind == 'application/json':
            wrong = self.wrong(described['content'][kind]['schema'], answer.json)
            assert not wrong, f'{method} {path} {answer.status}: {wrong} in {answer}'
        if answer.status == 200 and 'requestBody' in operation:
            wrong = self.wrong(operation['requestBody']['content']['application/json']['schema'], sent)
            assert not wrong, f'{method} {path}: the server took {wrong}'
        self.seen.add((method, path, str(answer.status)))

    def missing(self):
        return sorted((method, path, status) for (method, path), operation in self.operations.items()
                      for status in operation['responses'] if status != 'default' and (method, path, status) not in self.seen)


class OpenApi(TestCase):
    def ask(self, client, method, path, body=None, query='', **more):
        answer = client.call(method, path + query, body, **more)
        self.document.take(method, path, body, answer)
        return answer

    def stream(self, path, query, headers):
        """The head of an answer that does not end."""
        with socket.create_connection(('127.0.0.1', self.server.port), timeout=60) as sock:
            lines = ''.join(f'{k}: {v}\r\n' for k, v in headers.items())
            sock.sendall(f'GET {path}{query} HTTP/1.1\r\nHost: x\r\n{lines}\r\n'.encode())
            got = b''
            while b'\r\n\r\n' not in got:
                got += sock.recv(4096)
        self.assertIn(b'200 OK', got)
        self.assertIn(b'text/event-stream', got)
        self.document.seen.add(('GET', path, '200'))

    def verbs(self, c):
        post = lambda path, body, **more: self.ask(c, 'POST', path, body, **more)
        get = lambda path, query='': self.ask(c, 'GET', path, query=query)
        bid = {'resource': 'o/a', 'owner': 'o', 'claim': claim(), 'ttl_ms': 60_000}
        granted = post('/v1/acquire', bid, headers={'Idempotency-Key': 'a'}).json
        post('/v1/acquire', {'resources': ['o/x', 'o/y'], 'owner': 'o', 'ttl_ms': 9000})
        post('/v1/acquire', {**bid, 'claim': claim()})
        post('/v1/acquire', {**bid, 'note': 'n'}, headers={'Idempotency-Key': 'a'})
        hold = {'resource': 'o/a', 'token': granted['token'], 'claim': bid['claim']}
        post('/v1/renew', {**hold, 'ttl_ms': 9000})
        post('/v1/renew', {'leases': [hold, {**hold, 'resource': 'o/none'}], 'ttl_ms': 9000})
        post('/v1/check', hold)
        post('/v1/progress', {**hold, 'marker': 'm'}, headers={'Idempotency-Key': 'p'})
        offer = {'resource': 'o/a', 'token': granted['token'], 'generation': granted['generation']}
        fences = lambda verb, o, **more: post(f'/v1/fences/{verb}', {**more, 'offer': o})
        once = {**offer, 'mode': 'once', 'key': 'k', 'digest': 'd'}
        act = {'name': 'n', 'key': 'k', 'owner': 'o'}
        fences('remember', offer, targets=['file:/t'])
        for verb in ('seal', 'admit'):
            fences(verb, offer, target='t')
        fences('admit', once, target='t1')
        fences('admit', {**once, 'digest': 'e'}, target='t1')
        fences('begin', offer, act=act)
        fences('finish', offer, act={**act, 'exit_code': 0, 'digest': 'd', 'ended_at_ms': 1})
        for key in ('k4', 'k5'):
            fences('begin', {**once, 'key': key}, act={**act, 'name': 'once', 'key': key})
        get('/v1/fences', '?target=t')
        get('/v1/fences', '?target=none')
        get('/v1/fences/act', '?name=n&key=k')
        get('/v1/fences/word', '?resource=o/a')
        get('/v1/fences/sealed', '?resource=o/a')
        post('/v1/fences/forget', {'resource': 'o/a', 'target': 'file:/t'})
        order = {'resource': 'o/a', 'token': granted['token'], 'why': 'w', 'by': 'b'}
        post('/v1/transfer', {**order, 'to': 'heir'}, headers={'Idempotency-Key': 't'})
        post('/v1/transfer', {**order, 'to': 'heir'})
        post('/v1/forget', {'resource': 'o/a'})
        post('/v1/revoke', order)
        post('/v1/revoke', {**order, 'token': granted['token'] + 1}, headers={'Idempotency-Key': 'r'})
        for verb in ('renew', 'check', 'progress', 'release', 'stall'):
            more = {'renew': {'ttl_ms': 9000}, 'progress': {'marker': 'm'}}.get(verb, {})
            post(f'/v1/{verb}', {**hold, **more})
        # The token has moved on: what is older is stale, none is refused too.
        none = {**offer, 'token': 0}
        new = self.ask(c, 'POST', '/v1/acquire', {**bid, 'claim': claim()}).json
        fences('seal', {**offer, 'token': new['token']}, target='t')
        fences('begin', {**offer, 'token': new['token']}, act={**act, 'key': 'k2'})
        for o in (offer, none):
            for verb in ('seal', 'admit'):
                fences(verb, o, target='t')
            fences('begin', o, act={**act, 'key': 'k3'})
            fences('finish', o, act={**act, 'exit_code': 0, 'ended_at_ms': 1})
            fences('remember', o, targets=['file:/t'])
        for name, verb in (('o/rel', 'release'), ('o/st', 'stall')):
            mine = {**bid, 'resource': name, 'claim': claim()}
            token = post('/v1/acquire', mine).json['token']
            post(f'/v1/{verb}', {'resource': name, 'token': token, 'claim': mine['claim']}, headers={'Idempotency-Key': verb})
            for other in ('release', 'stall', 'progress'):
                # Used for another request.
                post(f'/v1/{other}', {'resource': name, 'token': 1, 'claim': mine['claim'], **({'marker': 'm'} if other == 'progress' else {})},
                     headers={'Idempotency-Key': 'a'})
        for verb in ('transfer', 'revoke'):
            post(f'/v1/{verb}', {**order, **({'to': 'h'} if verb == 'transfer' else {})}, headers={'Idempotency-Key': 'a'})
        post('/v1/forget', {'resource': 'o/rel'})
        post('/v1/events', {'event': {'at_ms': 1, 'kind': 'note', 'resource': 'o/a', 'owner': 'o'}})

    def looks(self, c):
        for path, query in (('/v1/lease', '?resource=o/a'), ('/v1/leases', '?limit=1'), ('/v1/history', '?resource=o/a'),
                            ('/v1/tune', '?resource=o/a'), ('/v1/waiters', ''),
                            ('/v1/events', ''), ('/v1/store', ''), ('/v1/keys', ''), ('/metrics', ''), ('/healthz', ''),
                            ('/readyz', ''), ('/v1/openapi.json', '')):
            self.ask(c, 'GET', path, query=query)
        self.stream('/v1/watch', '?resource=o/a', {'Authorization': f'Bearer {c.key}'})
        self.stream('/v1/events', '', {'Authorization': f'Bearer {c.key}', 'Accept': 'text/event-stream'})
        made = self.ask(c, 'POST', '/v1/keys', {'name': 'made', 'allow': ['read'], 'expires_in_ms': 1000}).json
        self.ask(c, 'POST', '/v1/keys/revoke', {'key': made['id']})

    def every(self, client, status, query=''):
        """Each operation that describes the status gives it to this client."""
        for (method, path), operation in self.document.operations.items():
            if str(status) in operation['responses'] and operation.get('security') != []:
                needed = [p['name'] for p in operation.get('parameters', []) if p.get('required')]
                asked = query or ('?' + '&'.join(f'{name}=x' for name in needed) if needed else '')
                answer = self.ask(client, method, path, None if method == 'GET' else {'nonsense': 1}, query=asked)
                self.assertEqual(answer.status, status, (method, path))

    def test_every_described_answer_occurs_and_no_other(self):
        with Server() as self.server:
            c = self.server.client(self.server.key('all', 'read,acquire,admit,queue,schedule,operate,admin'))
            weak = self.server.client(self.server.key('weak', 'queue'))
            until(lambda: weak.get('/v1/store').json.get('key') == 'weak', 'the keys are known')
            self.document = Document(c.get('/v1/openapi.json').body)
            self.assertEqual(self.document.whole['openapi'], '3.1.0')
            self.verbs(c)
            self.looks(c)
            self.every(c, 400, '?nonsense=1')
            self.every(self.server.client(), 401)
            self.every(weak, 403)
        with Server('--rate', '1') as self.server:
            c = self.server.client(self.server.key('all', 'read,acquire,admit,queue,schedule,operate,admin'))
            until(lambda: c.get('/v1/store').status == 429, 'the rate is used up')
            for (method, path), operation in self.document.operations.items():
                if '429' in operation['responses']:
                    def limited():
                        answer = c.call(method, path, None if method == 'GET' else {'nonsense': 1})
                        return answer if answer.status == 429 else None
                    self.document.take(method, path, None, until(limited, f'{path} is limited'))
        self.assertEqual(self.document.missing(), [])
        print(f'{len(self.document.seen)} described answers occurred, of {len(self.document.operations)} operations')


if __name__ == '__main__':
    main()
