#!/usr/bin/env python3
"""mutants.py [-l] [NAME...]: takes each guard's compare out once, and looks whether a test fails.

A copy of the last commit is built in a folder of its own (BUILD, default /tmp/stint-mutants; ccache makes that quick).
Each mutant is one change of the text in tools/mutants.txt; the tests that it names must fail, and must pass without it.
Prints a table; the exit code is 0 only if no mutant survived.
"""
import io
import os
import pathlib
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGETS = {
    "guard_tests": ["guard_tests", "guard_player"],
    "guard_git_tests": ["guard_git_tests", "stint"],
    "guard_sql_tests": ["guard_sql_tests", "stint"],
    "guard_http_tests": ["guard_http_tests", "stint", "stint_module_http"],
    "unit_tests": ["unit_tests"],
    "cli_tests": ["cli_tests", "stint"],
}
PATIENCE = 300  # a play that never ends has seen the mutant too


def read_mutants(text):
    """Blocks: '== NAME | FILE | BINARY | FILTER', the old lines, '--', the new lines."""
    mutants = []
    for block in text.split("\n== ")[1:]:
        head, _, body = block.partition("\n")
        name, file, binary, tests = (part.strip() for part in head.split("|"))
        old, _, new = body.partition("\n--\n")
        mutants.append({"name": name, "file": file, "binary": binary, "tests": tests,
                        "old": old.strip("\n"), "new": new.strip("\n")})
    return mutants


def build(folder, binary):
    done = subprocess.run(["ninja", "-C", str(folder / "build"), *TARGETS[binary]], capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout[-2000:]


def tests_pass(folder, binary, tests):
    program = next(p for p in (folder / "build/tests").rglob(binary) if p.is_file())
    try:
        done = subprocess.run([str(program), f"--gtest_filter={tests}", "--gtest_fail_fast"], capture_output=True,
                              text=True, timeout=PATIENCE, start_new_session=True)
    except subprocess.TimeoutExpired:
        return False, "did not end"
    failed = [line.split("]")[1].strip().split(" (")[0].split(",")[0] for line in done.stdout.splitlines()
              if line.startswith("[  FAILED  ] ") and "." in line]
    if done.returncode == 0 and "[  PASSED  ] 0 tests" in done.stdout:
        return False, "no such test"
    return done.returncode == 0, failed[0] if failed else f"ended with {done.returncode}"


def prepare(folder):
    folder.mkdir(parents=True, exist_ok=True)
    archive = subprocess.run(["git", "-C", str(ROOT), "archive", "HEAD"], capture_output=True, check=True).stdout
    names = set()
    with tarfile.open(fileobj=io.BytesIO(archive)) as tree:
        for member in (m for m in tree if m.isfile()):
            names.add(member.name)
            path, text = folder / member.name, tree.extractfile(member).read()
            # Only what differs gets a new time.
            if not path.exists() or path.read_bytes() != text:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(text)
            path.chmod(member.mode | 0o200)
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if path.is_file() and not name.startswith("build/") and name not in names:
            path.unlink()
    subprocess.run(["cmake", "-S", str(folder), "-B", str(folder / "build"), "-G", "Ninja", "-DBUILD_TESTING=ON",
                    "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON"], check=True, capture_output=True)


def try_mutant(folder, mutant):
    path = folder / mutant["file"]
    whole = path.read_text()
    if whole.count(mutant["old"]) != 1:
        return "cannot be made", f"its text stands {whole.count(mutant['old'])} times in {mutant['file']}"
    try:
        path.write_text(whole.replace(mutant["old"], mutant["new"]))
        wrong = build(folder, mutant["binary"])
        if wrong:
            return "cannot be built", wrong.split("error: ")[-1].splitlines()[0]
        good, which = tests_pass(folder, mutant["binary"], mutant["tests"])
        return ("SURVIVED", mutant["tests"]) if good else ("killed", which)
    finally:
        path.write_text(whole)


def main():
    words = [word for word in sys.argv[1:] if word != "-l"]
    mutants = read_mutants((ROOT / "tools/mutants.txt").read_text())
    if words:
        mutants = [m for m in mutants if any(m["name"].startswith(word) for word in words)]
    if "-l" in sys.argv:
        print("\n".join(m["name"] for m in mutants))
        return 0
    folder = pathlib.Path(os.environ.get("BUILD", "/tmp/stint-mutants"))
    os.environ.update(CCACHE_BASEDIR=str(folder), CCACHE_NOHASHDIR="1")
    prepare(folder)
    bad = 0
    for binary in sorted({m["binary"] for m in mutants}):
        wrong = build(folder, binary)
        if wrong:
            sys.exit(wrong)
        tests = ":".join(sorted({m["tests"] for m in mutants if m["binary"] == binary}))
        good, which = tests_pass(folder, binary, tests)
        if not good:
            sys.exit(f"without a mutant: {binary}: {which}")
        for mutant in (m for m in mutants if m["binary"] == binary):
            fate, which = try_mutant(folder, mutant)
            bad += fate != "killed"
            print(f"| {mutant['name']} | {fate} | {which} |", flush=True)
        build(folder, binary)
    print(f"{len(mutants)} mutants, {bad} not killed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
