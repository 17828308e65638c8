"""``python -m tests.mutation``: draw mutants of the simulator, and see which tests notice.

``map [pytest words]`` runs the tests once and keeps which lines each covers. Then
``run --area access --count 60 --seed 1`` draws mutants; each is put into a forked process, in
which the tests that cover its line run, the quickest first, until one fails.
"""

import argparse
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from .cover import Map, record
from .mutants import AREAS, Mutant, apply, drawn

KILLED, SURVIVED, HUNG, NOT_APPLIED = 1, 0, 2, 3
WORDS = {KILLED: "killed", SURVIVED: "SURVIVED", HUNG: "killed (hung)", NOT_APPLIED: "at import"}


class Runner:
    """A pytest plugin: instead of the tests, the mutants, each with its own."""

    def __init__(self, mutants: list[Mutant], known: Map, most: int, seconds: float) -> None:
        self.mutants, self.known, self.most, self.seconds = mutants, known, most, seconds
        self.counts: Counter[str] = Counter()
        self.survivors: list[Mutant] = []

    def pytest_configure(self) -> None:
        """A failing example needs no shrinking."""
        import hypothesis

        hypothesis.settings.register_profile(
            "mutation", phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
            database=None, deadline=None,
        )  # fmt: skip
        hypothesis.settings.load_profile("mutation")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        for number, mutant in enumerate(self.mutants, 1):
            names = self.known.covering(mutant.file, mutant.line)
            chosen = [items[name] for name in names if name in items][: self.most]
            start = time.monotonic()
            result = self.judged(mutant, chosen) if chosen else SURVIVED
            word = WORDS[result] if chosen else "NOT COVERED"
            self.counts[word] += 1
            if result == SURVIVED:
                self.survivors.append(mutant)
            print(
                f"\n{number}: {mutant.file}:{mutant.line} {word} "
                f"({len(chosen)} of {len(names)} tests, {time.monotonic() - start:.1f} s)"
            )
            if result == SURVIVED:
                print(mutant.diff, flush=True)
        return True

    def judged(self, mutant: Mutant, items: list[pytest.Item]) -> int:
        """The verdict of a forked process."""
        child = os.fork()
        if child == 0:
            self.child(mutant, items)
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else KILLED

    def child(self, mutant: Mutant, items: list[pytest.Item]) -> None:
        """Run tests until one fails; never returns."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        signal.signal(signal.SIGALRM, lambda *_: os._exit(HUNG))
        try:
            if not apply(mutant):
                os._exit(NOT_APPLIED)
            end = time.monotonic() + self.seconds
            for item, following in zip(items, [*items[1:], None], strict=True):
                signal.alarm(int(30 + 10 * self.known.seconds.get(item.nodeid, 1)))
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if time.monotonic() > end:
                    break
        except BaseException:
            os._exit(KILLED)
        os._exit(SURVIVED)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            os._exit(KILLED)


def run(options: argparse.Namespace) -> int:
    """Draw and judge; 1 if a mutant survives."""
    known = Map(options.map)
    failed = False
    for area in options.area or list(AREAS):
        mutants = drawn(area, options.count, options.seed)
        print(f"== {area}: {len(mutants)} mutants, seed {options.seed}", flush=True)
        files = {m.file for m in mutants}
        tests = {name.split("::")[0] for file in files for name in known.lines.get(file, {})}
        runner = Runner(mutants, known, options.tests, options.seconds)
        words: list[Any] = ["-q", "-s", "-p", "no:cacheprovider", "--no-header", "--no-summary"]
        pytest.main([*words, *sorted(tests)], plugins=[runner])
        print(f"== {area}: drawn {len(mutants)}, {dict(runner.counts)}", flush=True)
        for mutant in runner.survivors:
            print(f"-- {mutant.file}:{mutant.line}\n{mutant.diff}")
        failed = failed or bool(runner.survivors)
    return int(failed)


def main(words: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--map", type=Path, default=Path(".mutation-map.json.gz"))
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("map").add_argument("words", nargs="*", help="tests, as for pytest")
    running = commands.add_parser("run")
    running.add_argument("--area", action="append", choices=list(AREAS))
    running.add_argument("--count", type=int, default=60)
    running.add_argument("--seed", type=int, default=1)
    running.add_argument("--tests", type=int, default=300, help="at most so many a mutant")
    running.add_argument("--seconds", type=float, default=60, help="of tests a mutant, about")
    options = parser.parse_args(words)
    if options.command == "map":
        record(options.map, options.words)
        return 0
    return run(options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
