#!/usr/bin/env python3
"""run_docs.py STINT: runs every ```sh run block of README.md and docs/; each in a fresh world, exit 0 within 10 s."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parent.parent
stint = pathlib.Path(sys.argv[1]).resolve()
failed = passed = 0
for page in [root / 'README.md', *sorted((root / 'docs').rglob('*.md'))]:
    for number, block in enumerate(re.findall(r'^```sh run\n(.*?)^```', page.read_text(), re.M | re.S), 1):
        with tempfile.TemporaryDirectory() as world:
            env = {k: v for k, v in os.environ.items() if not k.startswith('STINT_') and k != 'RUN_ID'}
            env.update(XDG_STATE_HOME=world + '/state', XDG_CONFIG_HOME=world + '/config', HOME=world,
                       PATH=f'{stint.parent}:{env["PATH"]}')
            try:
                done = subprocess.run(['bash', '-euo', 'pipefail', '-c', block], cwd=world, env=env, timeout=10,
                                      capture_output=True, text=True)
                ok, said = done.returncode == 0, done.stdout + done.stderr
            except subprocess.TimeoutExpired:
                ok, said = False, 'took longer than 10 s'
        passed, failed = passed + ok, failed + (not ok)
        if not ok:
            print(f'{page.relative_to(root)}, block {number} failed:\n{block}--\n{said}')
lines = len((root / 'README.md').read_text().splitlines())
if lines > 150:
    failed += 1
    print(f'README.md has {lines} lines; 150 at most')
print(f'{passed} passed, {failed} failed')
sys.exit(1 if failed or not passed else 0)
