#!/usr/bin/env python3
"""Reads the #include lines: a room includes only what stands to its right in docs/ARCHITECTURE.md."""
import pathlib
import re
import sys

ROOMS = {
    'base': [],
    'core': ['base'],
    'os': ['base'],
    'net': ['base', 'os'],
    'api': ['base', 'core'],
    'store': ['base', 'os', 'net'],
    'service': ['base', 'api', 'core', 'store'],
    'client': ['base', 'api', 'core', 'net'],
    'holder': ['base', 'api', 'core', 'os'],
    'guard': ['base', 'api', 'core', 'os', 'net'],
    'schedule': ['base', 'api', 'core', 'holder'],
    'queue': ['base', 'api', 'core', 'holder', 'os'],
    'report': ['base', 'api', 'core'],
    'probe': ['base', 'api', 'core', 'store'],
    'server': ['base', 'api', 'core', 'net', 'report'],
    'agent': ['base', 'api', 'core'],
    'app': None,  # composition: everything
    'lib': ['base', 'api', 'core', 'os', 'holder', 'guard', 'app', 'stint'],  # behind include/stint
    'cli': ['base', 'api', 'core', 'app', 'report', 'holder', 'guard', 'queue', 'schedule', 'os'],
}
# core is pure: none of these, not even from the standard library.
IMPURE = {'thread', 'mutex', 'condition_variable', 'future', 'iostream', 'fstream', 'cstdio', 'filesystem',
          'unistd.h', 'ctime', 'random', 'atomic'}

src = pathlib.Path(__file__).resolve().parent.parent / 'src'
problems = []
for path in sorted(src.rglob('*')):
    if path.suffix not in ('.h', '.cc') or path.name.endswith('_test.cc'):
        continue
    parts = path.relative_to(src).parts
    room = parts[0]
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r'#include ([<"])([^>"]+)[>"]', line)
        if not match:
            continue
        where = f'{path.relative_to(src.parent)}:{number}'
        kind, name = match.groups()
        if kind == '<':
            if room == 'core' and name in IMPURE:
                problems.append(f'{where}: core is pure, but includes <{name}>')
            continue
        target = name.split('/')
        if target[0] == room:
            if room == 'store' and len(parts) > 2 and len(target) > 2 and target[1] != parts[1]:
                problems.append(f'{where}: one store includes another')
            continue
        allowed = ROOMS.get(room)
        if allowed is not None and target[0] not in allowed:
            problems.append(f'{where}: {room}/ may not include {target[0]}/')
        if room not in ('app', 'store') and target[0] == 'store' and name != 'store/seam.h':
            if name not in ('store/append_key.h', 'store/many.h'):
                problems.append(f'{where}: only app/ names a concrete store')
print('\n'.join(problems))
sys.exit(1 if problems else 0)
