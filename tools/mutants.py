#!/usr/bin/env python3
"""mutants.py [--check | --list] [NAME...]: takes one rule out at a time, and looks whether a test fails.

NAME is a row's id or its beginning, or a table (law, service, stores, holder, queue, schedule, guards); none: all.
--check looks only whether every row still fits the source: nothing is built.

The tables are tools/mutants/*.txt. A row is a block:
  == ID | FILE | TESTS | what it takes out, in words
  the lines as they stand, exactly once in FILE
  --
  the lines instead
TESTS: `BINARY FILTER` (GoogleTest), `sim SEEDS`, `FILE.py CLASS`; several are parted by `;` and run until one fails.

The tree is copied into build-mutants/ (BUILD names another folder), which is built once; then each row is one compile,
one link and its tests. They must pass without the row and fail with it. Exit 0: no row survived, and every row could
be tried. WRAP is a command that every build and test is run under (nice, taskset).
"""
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What a test binary runs, beyond what CMake knows of.
ALSO = {"guard_git_tests": ["stint"], "guard_sql_tests": ["stint"], "guard_http_tests": ["stint", "stint_module_http"],
        "guard_tests": ["guard_player"]}
PATIENCE = 300  # a play that never ends has seen the mutant too
WRAP = shlex.split(os.environ.get("WRAP", ""))


def read_rows():
    rows = []
    for path in sorted((ROOT / "tools/mutants").glob("*.txt")):
        for block in ("\n" + path.read_text()).split("\n== ")[1:]:
            head, _, body = block.partition("\n")
            name, file, tests, what = (part.strip() for part in head.split("|"))
            old, _, new = body.partition("\n--\n") if "\n--\n" in body else body.rstrip().partition("\n--")
            rows.append({"id": name, "table": path.stem, "file": file, "what": what, "old": old.strip("\n"),
                         "new": new.strip("\n"),
                         "tests": [tuple(one.strip().split(None, 1)) for one in tests.split(";")]})
    return rows


def misfits(rows):
    """Rows that do not fit the source, each with the reason."""
    bad, seen = [], set()
    for row in rows:
        path = ROOT / row["file"]
        count = path.read_text().count(row["old"]) if path.is_file() and row["old"] else 0
        if row["id"] in seen:
            bad.append((row, "its id is not its own"))
        elif count != 1:
            bad.append((row, f"its text stands {count} times in {row['file']}"))
        elif row["old"] == row["new"]:
            bad.append((row, "it changes nothing"))
        seen.add(row["id"])
    return bad


def build(folder, binary):
    wanted = ["stint", "stint_module_http"] if binary.endswith(".py") else [binary, *ALSO.get(binary, [])]
    done = subprocess.run([*WRAP, "ninja", "-C", str(folder / "build"), "-j1", *wanted],
                          capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout[-4000:]


def run(command, folder):
    """The exit code (None: it did not end) and the output."""
    environment = {**os.environ, "RC_PARAMS": "seed=20261115 max_success=40",
                   "STINT_BINARY": str(folder / "build/stint")}
    with subprocess.Popen([*WRAP, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", start_new_session=True, env=environment) as process:
        try:
            output, _ = process.communicate(timeout=PATIENCE)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None, ""


def tests_pass(folder, binary, argument):
    if binary.endswith(".py"):
        code, output = run([sys.executable, "-B", str(folder / binary), *argument.split()], folder)
        failed = [line.split()[1] for line in output.splitlines() if line.startswith(("FAIL: ", "ERROR: "))]
        return code == 0, failed[0] if failed else f"{binary} ended with {code}"
    program = next(p for p in (folder / "build/tests").rglob(binary) if p.is_file())
    if binary == "sim":
        code, output = run([str(program), *argument.split()], folder)
        law = next((line.strip() for line in output.splitlines() if "law" in line and "broken" in line), "a seed")
        return code == 0, f"sim: {law[:80]}"
    code, output = run([str(program), f"--gtest_filter={argument}", "--gtest_fail_fast"], folder)
    if code is None:
        return False, f"{binary} did not end"
    if code == 0 and "[  PASSED  ] 0 tests" in output:
        sys.exit(f"{binary} has no test {argument}")
    failed = [line.split("]")[1].strip().split(" (")[0].split(",")[0] for line in output.splitlines()
              if line.startswith("[  FAILED  ] ") and "." in line]
    return code == 0, failed[0] if failed else f"{binary} ended with {code}"


def copy_tree(folder):
    """What git knows or would; only what differs gets a new time."""
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard", "-z"], capture_output=True,
                            text=True, check=True).stdout
    names = {name for name in listed.split("\0") if name and (ROOT / name).is_file()}
    for name in names:
        source, target = ROOT / name, folder / name
        if not target.exists() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
        target.chmod(source.stat().st_mode | 0o200)
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if path.is_file() and not name.startswith("build/") and name not in names and path.suffix in (".cc", ".h", ".txt"):
            path.unlink()


def prepare(folder, rows):
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.update(CCACHE_BASEDIR=str(folder), CCACHE_NOHASHDIR="1")
    copy_tree(folder)
    flags = []
    if subprocess.run(["sh", "-c", "command -v ld.lld"], capture_output=True, check=False).returncode == 0:
        flags = ["-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld", "-DCMAKE_MODULE_LINKER_FLAGS=-fuse-ld=lld"]
    files = sorted({row["file"] for row in rows})
    subprocess.run(["cmake", "-S", str(folder), "-B", str(folder / "build"), "-G", "Ninja", "-DBUILD_TESTING=ON",
                    "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON", f"-DMUTANTS={';'.join(files)}", *flags],
                   check=True, capture_output=True)


class Yard:
    """The copy of the tree, and what was found out about it."""

    def __init__(self, folder, rows):
        self.folder, self.rows, self.sound = folder, rows, set()

    def need(self, binary):
        """Its tests as they are, once: whoever fails now shows nothing later."""
        if binary in self.sound:
            return
        wrong = build(self.folder, binary)
        if wrong:
            sys.exit(wrong)
        arguments = sorted({argument for row in self.rows for b, argument in row["tests"] if b == binary})
        joint = {"sim": arguments[-1]}.get(binary, (" " if binary.endswith(".py") else ":").join(arguments))
        good, which = tests_pass(self.folder, binary, joint)
        if not good:  # a busy machine may be the reason, once
            good, which = tests_pass(self.folder, binary, joint)
        if not good:
            sys.exit(f"without a mutant: {which}")
        self.sound.add(binary)

    def try_test(self, row, binary, argument):
        self.need(binary)
        path = self.folder / row["file"]
        whole = path.read_text()
        try:
            path.write_text(whole.replace(row["old"], row["new"]))
            wrong = build(self.folder, binary)
            if wrong:
                return "CANNOT BE BUILT", wrong.split("error: ")[-1].splitlines()[0]
            good, which = tests_pass(self.folder, binary, argument)
            return "SURVIVED" if good else "caught", which
        finally:
            path.write_text(whole)

    def try_row(self, row):
        for binary, argument in row["tests"]:
            fate, which = self.try_test(row, binary, argument)
            if fate != "SURVIVED":
                return fate, which
        return "SURVIVED", "; ".join(" ".join(test) for test in row["tests"])


def chosen(rows, words):
    found = [row for row in rows if not words or any(row["table"] == word or row["id"].startswith(word) for word in words)]
    if not found:
        sys.exit("no such row")
    return found


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    rows = read_rows()
    bad = misfits(rows)
    for row, why in bad:
        print(f"{row['id']}: {why}")
    if "--check" in sys.argv or bad:
        print(f"{len(rows)} rows, {len(bad)} do not fit the source")
        return 1 if bad else 0
    rows = chosen(rows, words)
    if "--list" in sys.argv:
        print("\n".join(f"{row['id']}: {row['what']}" for row in rows))
        return 0
    folder = pathlib.Path(os.environ.get("BUILD", ROOT / "build-mutants"))
    prepare(folder, read_rows())
    yard = Yard(folder, rows)
    fates = {}
    for row in sorted(rows, key=lambda r: (r["table"], r["file"])):
        begun = time.monotonic()
        fate, which = fates[row["id"]] = yard.try_row(row)
        print(f"| {row['id']} | {row['what']} | {fate} | `{which}` |", flush=True)
        print(f"{row['id']}: {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    for table in sorted({row["table"] for row in rows}):
        here = [fates[row["id"]][0] for row in rows if row["table"] == table]
        print(f"{table}: {len(here)} rows, {here.count('caught')} caught")
    missed = [name for name, (fate, _) in fates.items() if fate != "caught"]
    print(f"all: {len(fates)} rows, {len(fates) - len(missed)} caught, {len(missed)} not: {' '.join(missed) or 'none'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
