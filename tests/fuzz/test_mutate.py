"""Some hundred damaged texts in the gate, and what the net makes of what it has to catch."""

import random
import re
from typing import Any

import pytest

import simulator
from kernels.ptx.lexer import Cursor
from simulator import SimulatorError
from simulator.compile.program import CompiledBlock
from tests.fuzz import damage, mutate
from tests.fuzz.report import Report
from tests.fuzz.samples import SAMPLES

pytestmark = pytest.mark.usefixtures("checked_writes")


@pytest.mark.slow
def test_some() -> None:
    # Not those that NVRTC compiles for a second, with <cooperative_groups.h>.
    dear = re.compile("cuda|library:.*cluster")
    quick = [name for name in mutate.origins() if not dear.match(name)]
    report = mutate.run(float("inf"), 7, 200, quick)
    assert report.differences == []
    assert report.programs == 200
    assert report.reached["ends"].keys() >= {"PtxError", "KernelError", "ran", "ran with hazards"}
    assert report.never("damage") == []


@pytest.mark.parametrize("sample", SAMPLES)
def test_samples_run(sample: str) -> None:
    assert {mutate.judged(sample, seed)[1] for seed in range(3)} == {""}
    assert any(mutate.judged(sample, seed)[0].startswith("ran") for seed in range(3))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (IndexError("list"), "IndexError in "),
        (RecursionError(), "RecursionError in "),
        (SimulatorError("two\nlines"), "AssertionError in "),
        (SimulatorError(""), "AssertionError in "),
        (SimulatorError("\x1b[31m"), "AssertionError in "),
        (MemoryError(), "MemoryError in "),
        (mutate.Slow(), f"more than {mutate.LIMIT} s of CPU time"),
    ],
)
def test_bites(error: BaseException, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def launch(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(simulator, "launch", launch)
    report = mutate.run(1, 7, 1, ["sample:0"])
    monkeypatch.undo()
    assert [d.what.startswith(told) for d in report.differences] == [True]
    assert report.differences[0].seed == 7


def test_bites_on_names_in_generated_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """The old defect: strings are names, and a function's name stands in a comment."""
    source = CompiledBlock.source

    def named(self: CompiledBlock, merge: bool) -> str:
        head, rest = source(self, merge).split("\n", 1)
        return f"{head}  # {self.block.function.name}\n{rest}"

    def name(self: Cursor) -> str:
        token = self.next()
        return token.text.strip('"').replace("\\n", "\n")

    texts = {damage.quoted(random.Random(seed), SAMPLES[2]) for seed in range(300)}
    assert {mutate.judged(text, 1)[1] for text in texts} == {""}
    monkeypatch.setattr(CompiledBlock, "source", named)
    monkeypatch.setattr(Cursor, "name", name)
    found = {mutate.judged(text, 1)[1].split(":")[0] for text in texts}
    assert any(what.startswith("NameError") for what in found)


@pytest.mark.parametrize("change", damage.CHANGES, ids=lambda change: change[0])
def test_takes_any_text(change: tuple[str, damage.Change, int]) -> None:
    for text in ("\n", ";", " ,;\n;,", "@ {};\n"):
        for seed in range(20):
            change[1](random.Random(seed), text)


def test_bites_on_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    peaks = iter([1 << 30, 4 << 30])
    monkeypatch.setattr(mutate, "_peak", lambda: next(peaks))
    assert mutate.judged(SAMPLES[0], 1)[1] == "3072 MiB of memory"


def test_shrinks(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the lines without which the error is gone."""

    def launch(text: str, seed: int) -> str:
        if "setp" in text and "ret" in text:
            raise KeyError(text)
        return "ran"

    monkeypatch.setattr(mutate, "launch", launch)
    what = mutate.judged(SAMPLES[0], 1)[1]
    assert what.startswith("KeyError in ")
    assert mutate.shrunk(SAMPLES[0], 1, what) == "setpret"


def test_slow_texts_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def launch(text: str, seed: int) -> str:
        while True:
            pass

    monkeypatch.setattr(mutate, "launch", launch)
    monkeypatch.setattr(mutate, "LIMIT", 0.2)
    assert mutate.judged("", 1)[1] == "more than 0.2 s of CPU time"


def test_a_seed_is_one_text() -> None:
    import random

    texts = {mutate.mutant(random.Random(5), mutate.origins(), Report()) for _ in range(3)}
    assert len(texts) == 1
