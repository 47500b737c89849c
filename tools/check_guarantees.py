#!/usr/bin/env python3
"""Every guarantee of docs/guarantees.md has code that names it and a test that is evidence of it."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
text = (root / 'docs/guarantees.md').read_text()
sections = dict(re.findall(r'^##+ (G\d+)\b.*?\n(.*?)(?=^##+ |\Z)', text, re.M | re.S))
named, proved = set(), set()
for path in [*(root / 'src').rglob('*'), *(root / 'tests').rglob('*')]:
    if path.suffix not in ('.h', '.cc'):
        continue
    content = path.read_text()
    for line in re.findall(r'EVIDENCE-OF:(.*)', content):
        proved.update(re.findall(r'\bG\d+\b', line))
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
print('\n'.join(problems))
print(f'{len(sections)} guarantees, {len(proved)} with evidence, {len(problems)} problems')
sys.exit(1 if problems else 0)
