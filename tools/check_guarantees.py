#!/usr/bin/env python3
"""Every guarantee of docs/guarantees.md has code that names it and a test that is evidence of it; the files and tests that
the page names are there, and every file that says it is evidence is named."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
text = (root / 'docs/guarantees.md').read_text()
sections = dict(re.findall(r'^##+ (G\d+)\b.*?\n(.*?)(?=^##+ |\Z)', text, re.M | re.S))
named, proved = set(), set()
evidence = {}  # file: the guarantees that it says it is evidence of
for path in [*(root / 'src').rglob('*'), *(root / 'tests').rglob('*')]:
    if path.suffix not in ('.h', '.cc'):
        continue
    content = path.read_text()
    for line in re.findall(r'EVIDENCE-OF:(.*)', content):
        proved.update(re.findall(r'\bG\d+\b', line))
        evidence.setdefault(path.relative_to(root).as_posix(), set()).update(re.findall(r'\bG\d+\b', line))
    if not path.name.endswith('_test.cc') and 'src' in path.relative_to(root).parts[0]:
        named.update(re.findall(r'\bG\d+\b', content))
problems = []
for number in [f'G{n}' for n in range(1, 13)]:
    if number not in sections:
        problems.append(f'{number}: no section in docs/guarantees.md')
    elif re.search(r'^\*{0,2}(Status: )?[Pp]lanned', sections[number], re.M):
        print(f'{number}: planned, says docs/guarantees.md')
    else:
        if number not in named:
            problems.append(f'{number}: no code under src/ names it')
        if number not in proved:
            problems.append(f'{number}: no test says EVIDENCE-OF: {number}')
for number, section in sections.items():
    for item in re.findall(r'^- (`[^`]+`:.*?)(?=^- |^\s*$|\Z)', section, re.M | re.S):
        file, rest = re.match(r'`([^`]+)`:(.*)', item, re.S).groups()
        if not (root / file).is_file():
            problems.append(f'{number}: there is no {file}')
            continue
        tests = (root / file).read_text()
        for suite, name in re.findall(r'`(\w+)\.(\w+|\*)`', rest):
            if name not in ('cc', 'py') and not (re.search(rf'\b{suite}\b', tests) and (name == '*' or name in tests)):
                problems.append(f'{number}: {file} has no test {suite}.{name}')
    for file in sorted(f for f, numbers in evidence.items() if number in numbers):
        if f'`{file}`' not in section:
            problems.append(f'{number}: {file} says that it is evidence, and is not named')
print('\n'.join(problems))
print(f'{len(sections)} guarantees, {len(proved)} with evidence, {len(problems)} problems')
sys.exit(1 if problems else 0)
