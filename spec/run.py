#!/usr/bin/env python3
"""run.py [MODEL]: checks the models of this directory with spin. Each model must pass with its whole state space
searched, and each of its variants, in which one rule was taken out, must be caught by an assertion. Exit 1 otherwise."""
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# model -> (what must pass, what must fail); a row is its -D, and what was taken out.
MODELS = {
    "lease": ([("", "lease, seal, fence")],
              [("NO_SEAL", "without seal"),
               ("NO_FENCE", "without fence"),
               ("RENEW_ANY_TIME", "renew without the time condition")]),
    "unknown": ([("", "answers lost, requests late")],
                [("READ_SETTLES", "unknown settled by a read")]),
    "file": ([("", "file guard, three tokens"),
              ("SAME", "file guard, two processes of one token"),
              ("ONCE", "file guard, mode once, and a repeat")],
             [("LEAVE_STAGES", "seal leaves staged bodies"),
              ("OWN_FENCE_ONLY", "looks for one's own fence only"),
              ("WRITE_UNSEALED", "a write above the fence does not seal"),
              ("ONCE NO_MARK", "once without the used mark"),
              ("ONCE GONE_IS_DONE", "a repeat takes gone for done")]),
    "publish": ([("", "fences inside a published tree")],
                [("PLAIN", "what comes along lets its token in"),
                 ("NO_LOOK", "a sealer does not look back"),
                 ("NOT_HANDED", "the old tree hands nothing over"),
                 ("NOT_CARRIED", "nothing comes along before")]),
    "restore": ([("", "restored from a backup, again and again")],
                [("NO_FLOOR", "restored store without floor"),
                 ("NO_MEMORY", "restored store that nobody remembers")]),
    "dirlog": ([("", "directory log, snapshot, cleaner"),
                ("LOOK_AT_SNAPSHOT", "the same, looking at the snapshot")],
               [("NO_LOOK", "no look after the link"),
                ("STRAY_IS_VOID", "a stray is taken for void")]),
}


def command(args, cwd):
    done = subprocess.run(args, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout


def search(model, defines, work):
    """(verdict, states): verdict is "passes", "caught: ASSERTION", or what went wrong."""
    flags = ["-D" + name for name in defines.split()]
    code, out = command(["spin", *flags, "-a", os.path.join(HERE, model + ".pml")], work)
    if code != 0 or not os.path.exists(os.path.join(work, "pan.c")):
        return "spin: " + out.strip(), 0
    # The exhaustive search, not bit-state hashing. Optimizing takes longer than it saves.
    code, out = command(["gcc", "-O0", "-DSAFETY", "-w", "-o", "pan", "pan.c"], work)
    if code != 0:
        return "gcc: " + out.strip(), 0
    code, out = command(["./pan", "-m200000"], work)
    states = re.search(r"(\d+) states, stored", out)
    count = int(states.group(1)) if states else 0
    violated = re.search(r"assertion violated\s+(.*) \(at depth", out)
    if violated:
        return "caught: " + violated.group(1), count
    whole = re.search(r"errors: 0\b", out) and "Search not completed" not in out and "too small" not in out
    return ("passes" if code == 0 and whole else "not decided: " + out.strip()), count


def main():
    wanted = sys.argv[1:] or list(MODELS)
    if unknown := [name for name in wanted if name not in MODELS]:
        sys.exit(f"no such model: {', '.join(unknown)}; there are {', '.join(MODELS)}")
    failed = total = 0
    print(f"{'model':8} {'variant':18} {'what':42} {'states':>9} {'s':>5}  verdict")
    for model in wanted:
        for rows, expected in zip(MODELS[model], ("passes", "caught: ")):
            for defines, what in rows:
                with tempfile.TemporaryDirectory() as work:
                    start = time.monotonic()
                    verdict, states = search(model, defines, work)
                    took = time.monotonic() - start
                right = verdict.startswith(expected) and states > 0
                failed += not right
                total += states if expected == "passes" else 0
                print(f"{model:8} {defines:18} {what:42} {states:9} {took:5.1f}  {verdict}{'' if right else '   WRONG'}",
                      flush=True)
    print(f"{total} states in all searches that must pass; {failed} verdicts are wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
