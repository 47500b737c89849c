#!/usr/bin/env python3
"""reference.py STINT [--check]: docs/reference/cli.md and http.md, from what the program itself says.

--check: whether they are what it says now; exit 1 if not.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.request

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "docs/reference"


def said(stint, *words):
    return subprocess.run([stint, *words], check=True, capture_output=True, text=True,
                          env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "TERM": "dumb"}).stdout.rstrip()


def commands(stint):
    rows = said(stint, "help").split("\nCommands:\n")[1].split("\n\n")[0]
    return [row.split()[0] for row in rows.splitlines()]


def cli(stint):
    out = ["# Commands", "",
           "Made by `tools/reference.py` from the program's own help, as are the manual pages. What is printed as JSON:",
           "[json.md](json.md); settings: [config.md](config.md).", ""]
    for title, words in [("stint", ["help"])] + [(f"stint {name}", ["help", name]) for name in commands(stint)] + [
            ("Exit codes", ["help", "exit-codes"]), ("Environment", ["help", "environment"])]:
        out += [f"## {title}", "", "```", said(stint, *words), "```", ""]
    return "\n".join(out)


def document(stint):
    with tempfile.TemporaryDirectory() as home:
        server = subprocess.Popen([stint, "serve", "--demo", "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True,
                                  env={"PATH": os.environ["PATH"], "HOME": home, "TERM": "dumb"})
        try:
            found = None
            for line in server.stderr:
                if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                    break
            if not found:
                sys.exit("stint serve --demo does not start")
            with urllib.request.urlopen(found.group(0) + "/v1/openapi.json", timeout=20) as answer:
                return json.load(answer)
        finally:
            server.terminate()
            server.communicate(timeout=20)


def http(stint):
    api = document(stint)
    out = ["# HTTP", "",
           "Made by `tools/reference.py` from `/v1/openapi.json` of `stint serve`, where the bodies are described in full. How to run",
           "and use a server: [guides/server.md](../guides/server.md). Codes of errors: [errors.md](errors.md).", "",
           "| request | what it does | takes | gives | refuses |", "|---|---|---|---|---|"]
    for path, methods in sorted(api["paths"].items()):
        for method, what in sorted(methods.items()):
            body = what.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            takes = [body.get("$ref", "").rsplit("/", 1)[-1]] if body else []
            takes += [f"`{one['name']}`" for one in what.get("parameters", [])]
            answers = what["responses"]
            good = next(iter(answers.get("200", {}).get("content", {}).values()), {}).get("schema", {})
            no = ", ".join(code for code in answers if code.isdigit() and code != "200")
            out.append(f"| `{method.upper()} {path}` | {what.get('summary', '')} | {', '.join(filter(None, takes))} | "
                       f"{good.get('$ref', '').rsplit('/', 1)[-1]} | {no} |")
    return "\n".join(out) + "\n"


def main():
    stint = os.path.abspath(sys.argv[1])
    wrong = []
    for name, text in (("cli.md", cli(stint)), ("http.md", http(stint))):
        path = FOLDER / name
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.is_file() or path.read_text() != text:
            wrong.append(name)
    if wrong:
        sys.exit(f"docs/reference: {', '.join(wrong)} not as the program says: tools/reference.py build/stint")


main()
