"""``python -m tests.fuzz.bites``: put each old defect back into a copy, and see the net find it.

Prints for each how many programs and seconds it took, and the seed. 1 if one is not found.
``--draw simulator/races/shadow/access_history.py --tests
tests/simulator/races/shadow/test_history.py`` takes random mutants of a file instead, and prints
which of them the tests miss.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.bites.defects import BITES, Bite
from tests.fuzz.bites.draw import drawn

ROOT = Path(__file__).parents[3]
COPIED = ("simulator", "kernels", "device", "tilescope", "tests", "pyproject.toml")


class Stale(Exception):
    """The piece that a patch replaces is not there any more, or more than once."""


def patched(bite: Bite) -> dict[str, str]:
    """The files of a defect, with it.

    Raises:
        Stale: A piece is not found exactly once.
    """
    texts: dict[str, str] = {}
    for file, old, new in bite.changes:
        text = texts.get(file) or (ROOT / file).read_text()
        if text.count(old) != 1:
            raise Stale(f"{file} has {text.count(old)} times {old.strip().splitlines()[0]!r}")
        texts[file] = text.replace(old, new)
    return texts


def command(bite: Bite, seconds: int) -> list[str]:
    if bite.net.startswith("tests/"):
        return [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
            *bite.net.split(),
        ]
    words = [str(seconds), str(bite.seed), "--net", bite.net, "--first"]
    return [sys.executable, "-m", "tests.fuzz", *words]


def judged(bite: Bite, seconds: int) -> tuple[bool, str]:
    """Whether the net finds a defect, and the table's words for it."""
    with tempfile.TemporaryDirectory() as folder:
        for name in COPIED:
            source, target = ROOT / name, Path(folder, name)
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)
        for file, text in patched(bite).items():
            Path(folder, file).write_text(text)
        paths = [folder, *filter(None, [os.environ.get("PYTHONPATH")])]
        start = time.monotonic()
        try:
            done = subprocess.run(
                command(bite, seconds), cwd=folder, capture_output=True, text=True,
                timeout=seconds + 120, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return False, f"no answer, {time.monotonic() - start:.0f} s"
        took = time.monotonic() - start
        out = done.stdout + done.stderr
        if bite.net.startswith("tests/"):
            failed = re.findall(r"^FAILED (\S+)", out, re.M)
            return done.returncode == 1, f"{failed[0] if failed else 'no test fails'}, {took:.0f} s"
        found = re.search(r"DIFFERENCE, seed (-?\d+): (.*)", out)
        programs = re.search(r": (\d+) programs", out)
        count = programs[1] if programs else "?"
        # An exception that the net does not expect; not one of a package that is missing here.
        if not found and "Traceback" in out and "ModuleNotFoundError" not in out:
            return True, f"{took:.0f} s, seed {bite.seed}: {out.strip().splitlines()[-1][:80]}"
        if not found:
            last = out.strip().splitlines()[-1:] if done.returncode != 0 else []
            return False, f"not found in {count} programs, {took:.0f} s {' '.join(last)}"
        return True, f"{count} programs, {took:.0f} s, seed {found[1]}: {found[2][:60]}"


def main(words: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.bites", description=__doc__)
    parser.add_argument("--seconds", type=int, default=600, help="for each defect")
    parser.add_argument("--only", help="defects whose name or net has this in it")
    parser.add_argument("--draw", metavar="FILE", help="random mutants of a file of the simulator")
    parser.add_argument("--tests", help="the tests that should find them")
    parser.add_argument("--count", type=int, default=20, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1, help="which mutants")
    options = parser.parse_args(words)
    if bool(options.draw) != bool(options.tests):
        parser.error("--draw and --tests go together")
    some = BITES
    if options.draw:
        some = tuple(drawn(options.draw, options.count, options.seed, options.tests))
    missed = 0
    for bite in some:
        if options.only and options.only not in bite.name and options.only != bite.net:
            continue
        try:
            found, what = judged(bite, options.seconds)
        except Stale as error:
            found, what = False, f"stale: {error}"
        missed += not found
        print(f"{'found ' if found else 'MISSED'} | {bite.net} | {bite.name} | {what}", flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
