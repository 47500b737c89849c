#!/usr/bin/env python3
"""check_links.py PROGRAM: what the program loads at its start is the C library and nothing else.

A short `stint run` costs little more than the command that it runs; libcurl and OpenSSL alone would make it five
times as slow as flock. What needs more is a module that is loaded on first use (docs/ARCHITECTURE.md)."""
import re
import subprocess
import sys

ALLOWED = re.compile(r"(linux-vdso|linux-gate|ld-linux[-\w]*|libc)\.so(\.\d+)*")


def main() -> int:
    told = subprocess.run(["ldd", sys.argv[1]], capture_output=True, text=True, check=False)
    names = [line.split()[0].rsplit("/", 1)[-1] for line in told.stdout.splitlines() if line.split()]
    if told.returncode != 0 or not any(name.startswith("libc.so") for name in names):
        print(f"{sys.argv[1]}: ldd does not tell: {told.stdout}{told.stderr}")
        return 2
    more = sorted(name for name in names if not ALLOWED.fullmatch(name))
    for name in more:
        print(f"{sys.argv[1]} loads {name} at its start")
    return 1 if more else 0


if __name__ == "__main__":
    sys.exit(main())
