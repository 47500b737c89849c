#!/usr/bin/env python3
"""clang_tidy.py BUILD: clang-tidy over src/, a batch of the build at a time.

Most of clang-tidy's time goes into the headers. So the files that the build compiles together are also
looked at together: written one after the other into one file (the analyzer does not look into what is
included), and what is found is told of the file and line that it came from.
"""
import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FLAGS = ["-std=c++20", f"-I{ROOT}/src", f"-I{ROOT}/include", f"-I{ROOT}", "-Wall", "-Wextra", "-Wthread-safety",
         "-Wshadow", "-Wno-unknown-warning-option",
         # The analyzer gives up on a function after so many states instead of 225,000: a quarter of the time.
         "-Xclang", "-analyzer-config", "-Xclang", "max-nodes=20000"]
# clang-tidy 14 cannot read toml++.
UNREADABLE = {"src/app/config_file.cc"}


def files_of(source):
    """The files of src/ that one entry of the compilation database stands for."""
    if "/Unity/" not in source:
        return [source]
    return re.findall(r'#include "([^"]+)"', Path(source).read_text())


def batches(build):
    seen = set()
    for entry in json.loads((build / "compile_commands.json").read_text()):
        files = [os.path.relpath(f, ROOT) for f in files_of(entry["file"])]
        files = [f for f in files if f.startswith("src/") and not f.endswith("_test.cc")
                 and f not in UNREADABLE and f not in seen]
        seen.update(files)
        flags = re.findall(r"(?:-D|-isystem )\S+", entry["command"])
        waiting = [f for f in files if "co_await" in (ROOT / f).read_text()]
        for part in ([f for f in files if f not in waiting], waiting):
            if part:
                yield part, flags


def look(number, batch, folder):
    files, flags = batch
    flat, origin = [], []
    for name in files:
        for line, text in enumerate((ROOT / name).read_text().split("\n"), 1):
            flat.append("" if text == "#pragma once" else text)
            origin.append((name, line))
    path = folder / f"batch{number}.cc"
    path.write_text("\n".join(flat))
    command = ["clang-tidy", "--quiet"]
    # clang 14's analyzer takes the frames of Asio's coroutines for uninitialised memory.
    if any("co_await" in line for line in flat):
        command.append("--checks=-clang-analyzer-*")
    done = subprocess.run([*command, f"--config-file={ROOT}/.clang-tidy", str(path), "--", *FLAGS,
                           *shlex.split(" ".join(flags))],
                          capture_output=True, text=True, cwd=ROOT)
    there = re.compile(re.escape(str(path)) + r":(\d+)")
    told = there.sub(lambda m: "{}:{}".format(*origin[int(m.group(1)) - 1]), done.stdout)
    if done.returncode and not told.strip():
        told = done.stderr
    return done.returncode, told


def main():
    build = Path(sys.argv[1])
    folder = build / "tidy"
    folder.mkdir(exist_ok=True)
    found = list(batches(build))
    missing = set(subprocess.run(["git", "ls-files", "src/*.cc"], capture_output=True, text=True, cwd=ROOT,
                                 check=True).stdout.split()) - UNREADABLE - {f for files, _ in found for f in files}
    missing = {f for f in missing if not f.endswith("_test.cc")}
    if missing:
        print("not compiled by the build, so not looked at:", *sorted(missing))
    # The long ones first, so that no core is left with one of them at the end.
    found.sort(key=lambda batch: -sum((ROOT / f).stat().st_size for f in batch[0]))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        ends = list(pool.map(look, range(len(found)), found, [folder.resolve()] * len(found)))
    for code, told in ends:
        if code:
            print(told)
    return 1 if missing or any(code for code, _ in ends) else 0


sys.exit(main())
