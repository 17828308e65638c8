"""Which test runs which lines, and how long it takes: computed once, kept in a file."""

import gzip
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coverage
import pytest

from .mutants import AREAS, ROOT

FILES = sorted({file for files in AREAS.values() for file in files})


class Recorder:
    """A pytest plugin: coverage by test, and times."""

    def __init__(self) -> None:
        self.coverage = coverage.Coverage(
            data_file=None, include=[str(ROOT / file) for file in FILES], config_file=False
        )
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()

    def pytest_sessionstart(self) -> None:
        self.coverage.start()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.coverage.switch_context(item.nodeid)
        start = time.monotonic()
        yield
        self.seconds[item.nodeid] = round(time.monotonic() - start, 4)
        self.coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed or report.skipped:
            self.failed.add(report.nodeid)

    def lines(self) -> dict[str, dict[str, list[int]]]:
        """Per file, the lines of each test."""
        self.coverage.stop()
        data = self.coverage.get_data()
        found: dict[str, dict[str, list[int]]] = {}
        for file in FILES:
            tests: dict[str, list[int]] = {}
            for line, contexts in sorted(data.contexts_by_lineno(str(ROOT / file)).items()):
                for context in contexts:
                    if context and context not in self.failed:
                        tests.setdefault(context, []).append(line)
            found[file] = tests
        return found


def record(path: Path, words: list[str]) -> None:
    """Run tests and keep what they cover."""
    recorder = Recorder()
    pytest.main(["-q", "-p", "no:cacheprovider", *words], plugins=[recorder])
    content = {"seconds": recorder.seconds, "lines": packed(recorder.lines())}
    path.write_bytes(gzip.compress(json.dumps(content).encode()))
    print(f"{len(recorder.seconds)} tests, {len(recorder.failed)} of them not usable: {path}")


def packed(lines: dict[str, dict[str, list[int]]]) -> dict[str, dict[str, str]]:
    """Lines as the bits of one number, in hex."""
    return {
        file: {test: hex(sum(1 << n for n in numbers)) for test, numbers in tests.items()}
        for file, tests in lines.items()
    }


class Map:
    """What ``record`` kept."""

    def __init__(self, path: Path) -> None:
        content: Any = json.loads(gzip.decompress(path.read_bytes()))
        self.seconds: dict[str, float] = content["seconds"]
        self.lines = {
            file: {test: int(bits, 16) for test, bits in tests.items()}
            for file, tests in content["lines"].items()
        }

    def covering(self, file: str, line: int) -> list[str]:
        """The tests that run a line, the quickest first."""
        tests = [test for test, bits in self.lines.get(file, {}).items() if bits >> line & 1]
        return sorted(tests, key=lambda test: self.seconds.get(test, 1e9))
