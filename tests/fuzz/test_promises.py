"""The net of promises in the gate: programs judged by hand, and a few that are drawn."""

import pytest

from tests.fuzz import promises
from tests.fuzz.promises import Found, Param, Program, Step

A = Param("a", 0, 0, "__restrict__", False)
B = Param("b", 0, 0, "__restrict__", False)
FAR = Param("b", 0, 64, "__restrict__", False)
PLAIN = Param("b", 0, 0, "", False)
CASES: dict[str, tuple[Program, Found]] = {
    "a read-only load of what the same pointer writes": (
        Program([A], [Step("store"), Step("barrier"), Step("ldg", stride=0)], False, 1, 64),
        {("cache", "0", 1)},
    ),
    "the same by a structure's member": (
        Program([A, B], [Step("atomic"), Step("call", limit=16)], True, 1, 64),
        {("cache", "0", 16)},
    ),
    "two restricted pointers, which say more": (
        Program([A, B], [Step("store"), Step("ldg", 1)], False, 2, 32),
        {("aliased", "a and b", 64)},
    ),
    "one that is not restricted": (
        Program([A, PLAIN], [Step("store"), Step("load", 1)], False, 1, 64), set(),
    ),
    "views that meet in one element": (
        Program([A, FAR], [Step("store", 0, 1), Step("load", 1)], False, 1, 64),
        {("aliased", "a and b", 1)},
    ),
    "views that do not meet": (
        Program([A, FAR], [Step("store"), Step("load", 1)], False, 1, 64), set(),
    ),
    "reads alone": (Program([A, B], [Step("ldg"), Step("take", 1)], False, 1, 64), set()),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_programs_judged_by_hand(name: str) -> None:
    program, expected = CASES[name]
    assert program.expected() == expected
    assert not promises.wrong(program, "lockstep")


@pytest.mark.parametrize("seed", range(4))
def test_random_promises(seed: int) -> None:
    assert not promises.wrong(promises.draw(seed), promises.SCHEDULES[seed])


@pytest.mark.slow
def test_all_of_it_is_reached() -> None:
    report = promises.run(float("inf"), 100, 40)
    assert report.programs == 40
    assert not report.differences, report.differences[0]
    assert not any(map(report.never, ("features", "verdicts")))
