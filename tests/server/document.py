"""The document at /v1/openapi.json, and what was seen of it."""
import json


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
                      for status in operation['responses'] if (method, path, status) not in self.seen)
