#!/usr/bin/env python3
"""House rules that a text search can see. One line a finding; exit 1 if there is any."""
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent
BANNED = [
    (r'\bsystem_clock::now|\bsteady_clock::now', 'src/os/', 'only os/clock.cc reads clocks'),
    (r'\bsleep_for\b|\busleep\(|\bnanosleep\(', 'src/os/pause.cc', 'only os/pause.h waits'),
    (r'\bstd::rand\b|\brand\(\)|\bsrand\(', None, 'use base/random.h'),
    (r'\bgetenv\(', 'src/app/', 'only app/ reads the environment'),
    (r'\benviron\b', ('src/app/', 'src/os/'), 'only app/ reads the environment; os/ passes it on to programs'),
    (r'\bthrow\b', None, 'we throw nothing'),
    (r'\bFIXME\b|\bXXX\b', None, 'no FIXME on main'),
    (r'\bwaitpid\(|\bWEXITSTATUS\b|\bWTERMSIG\b|\bWIF(EXITED|SIGNALED)\b',
     ('src/os/ended.cc', 'src/os/launch.cc', 'src/os/guardian.cc', 'src/os/tree.cc'),
     'only os/ended.h says how a child ended: an end that nobody saw is no 0'),
]
problems = []
files = subprocess.run(['git', 'ls-files', 'src', 'include', 'tests', 'bench', 'examples', 'tools'], cwd=root,
                       capture_output=True, text=True, check=True).stdout.split()
for name in files:
    path = root / name
    if path.suffix not in ('.cc', '.h') or not path.exists():
        continue
    lines = path.read_text().splitlines()
    if len(lines) > 800:
        problems.append(f'{name}: {len(lines)} lines; split at 800')
    for number, line in enumerate(lines, 1):
        if len(line) > 120:
            problems.append(f'{name}:{number}: longer than 120 columns')
        if not name.startswith('src/') or name.endswith('_test.cc'):
            continue
        code = re.sub(r'//.*', '', line)
        code = re.sub(r'"(\\.|[^"\\])*"', '""', code)
        for pattern, where, why in BANNED:
            if re.search(pattern, code) and not (where and name.startswith(where)):
                problems.append(f'{name}:{number}: {why}')
    if re.search(r'TODO(?!\(#\d+\))', path.read_text()):
        problems.append(f'{name}: a TODO names an issue: TODO(#N)')
print('\n'.join(problems))
sys.exit(1 if problems else 0)
