"""Findings of several builds merged, and what a policy makes of what is disputed."""

import dataclasses
from typing import Any

import pytest

from simulator import Hazard, Participant, Source
from tests.support.command_line import check, launch
from tilescope.check.builds import merge
from tilescope.check.policy import Policy, apply, ignored
from tilescope.cli.menu.choices import CHOICES


@dataclasses.dataclass
class Seen:
    """As much of a run as merging looks at."""

    build: str
    hazards: list[Hazard]


def hazard(*lines: int, severity: str = "error", also: tuple[str, ...] = ()) -> Hazard:
    involved = tuple(
        Participant("read", Source("a.cu", line), "ld.shared.f32", line) for line in lines
    )
    message = "RAW race on shared s (read of what another warp may not have written yet)"
    return Hazard(
        "raw-race", message, severity, "shared", "s", involved=involved, also=also, reach="warp"
    )


def merged(*hazards: list[Hazard]) -> list[tuple[tuple[int, ...], tuple[str, ...]]]:
    runs: Any = [
        Seen(build, found) for build, found in zip(("device", "source"), hazards, strict=True)
    ]
    return [(h.lines, h.builds) for h in merge(runs)]


def test_builds_are_merged_by_variable_and_lines() -> None:
    both, device, source = ("device", "source"), ("device",), ("source",)
    assert merged([hazard(3, 5)], [hazard(3, 5)]) == [((3, 5), both)]
    assert merged([hazard(3, 5)], [hazard(7, 9)]) == [((3, 5), device), ((7, 9), source)]
    assert merged([hazard(3, 5)], [hazard(4, 5, also=("t",))]) == [((3, 5), both)]
    assert merged([hazard(3, 5)], [hazard(4, 5), hazard(3, 5)]) == [
        ((3, 5), both),
        ((4, 5), source),
    ]
    assert merged([hazard(3, 5, severity="warning")], [hazard(3, 5)]) == [((3, 5), both)]
    assert merged([hazard(3, 5), hazard(3, 5)], []) == [((3, 5), device)]


def test_builds_may_tell_the_same_finding_in_other_words() -> None:
    def out_of_bounds(space: str, name: str, line: int) -> Hazard:
        involved = (Participant("read", Source("a.cu", line), "ld.f32", 9),)
        return Hazard("out-of-bounds", name, "error", space, name, involved=involved)

    def trap(place: Source) -> Hazard:
        return Hazard("trap", "a trap", involved=(Participant("at", place, "trap", 9),))

    both = ("device", "source")
    shared, unknown = out_of_bounds("shared", "s", 3), out_of_bounds("global", "", 3)
    assert merged([shared], [unknown]) == [((3,), both)]
    assert len(merged([shared], [out_of_bounds("global", "", 4)])) == 2
    headers = trap(Source("PTX line 40", 0, "trap"))
    assert merged([trap(Source("a.cu", 3))], [headers]) == [((3,), both)]
    assert len(merged([headers], [trap(Source("a.cu", 3)), headers])) == 2


EQUAL = Hazard("waw-race", "WAW race", "warning", "shared", "s", case="equal", reach="warp")


LANES = Hazard("raw-race", "RAW race", "warning", "shared", "s", case="in step", reach="lane")


OTHER = Hazard("barrier-divergence", "a barrier after some threads have exited", "warning")


SEVERE = Hazard("out-of-bounds", "write out of bounds: x[1]")


@pytest.mark.parametrize("equal", CHOICES)
@pytest.mark.parametrize("lanes", CHOICES)
def test_a_policy_judges_what_is_disputed_and_nothing_else(equal: str, lanes: str) -> None:
    before = [EQUAL, LANES, OTHER, SEVERE]
    kept, left_out = apply(Policy(equal, lanes), before)
    found = {hazard.message: hazard.severity for hazard in kept}
    assert found.pop(OTHER.message) == "warning"
    assert found.pop(SEVERE.message) == "error"
    assert found.pop(EQUAL.message, "ignore") == equal
    assert found.pop(LANES.message, "ignore") == lanes
    assert left_out == (equal == "ignore") + (lanes == "ignore")
    order = [hazard.severity for hazard in kept]
    assert order == sorted(order)
    assert [EQUAL.severity, LANES.severity] == ["warning", "warning"]


@pytest.mark.slow_cases("error-1")
@pytest.mark.parametrize(("choice", "code"), [("error", 1), ("warning", 0), ("ignore", 0)])
def test_equal_writes(file: str, choice: str, code: int) -> None:
    result = check(file, *launch("flags", 64, "i32[1]"), "--equal-writes", choice)
    assert result.exit_code == code
    head = {"error": "1 error in", "warning": "1 warning in", "ignore": "no hazards in"}[choice]
    assert result.stdout.startswith(head)
    assert ("left out by the policy chosen: 1 hazard" in result.stdout) == (choice == "ignore")
    assert ("every write leaves the same value" in result.stdout) == (choice != "ignore")


@pytest.mark.slow_but("ignore-0")
@pytest.mark.parametrize(("choice", "code"), [("error", 1), ("warning", 0), ("ignore", 0)])
def test_warp_synchronous(file: str, choice: str, code: int) -> None:
    words = (file, *launch("neighbour", 32, "f32[32]"), "--warp-synchronous", choice)
    result = check(*words)
    assert result.exit_code == code
    head = {"error": "1 error in", "warning": "1 warning in", "ignore": "no hazards in"}[choice]
    assert result.stdout.startswith(head)
    fixed = "__syncwarp() after line 15: verified, 0 errors left" in result.stdout
    assert fixed == (choice != "ignore")
    assert check(*words, "--fail-on", "warning").exit_code == int(choice != "ignore")


@pytest.mark.parametrize(
    ("kind", "roles", "commented", "left_out"),
    [
        ("uninitialised", ("read", "used", "used"), (1,), False),
        ("uninitialised", ("read", "used", "used"), (1, 2), True),
        ("uninitialised", ("read", "used", "used"), (0,), True),
        ("unset-constant", ("read", "read"), (1,), False),
        ("unset-constant", ("read", "read"), (0, 1), True),
        ("barrier-divergence", ("waits", "branch"), (1,), True),
        ("trap", (), (), False),
    ],
)
def test_what_a_comment_does_not_name_stays(
    kind: str, roles: tuple[str, ...], commented: tuple[int, ...], left_out: bool
) -> None:
    """Several uses of one value and several reads of one variable are told as one hazard."""
    codes = ["// tilescope: ignore" * (n in commented) for n in range(len(roles))]
    involved = tuple(
        Participant(role, Source("a.cu", 3 + n, code), "ld.f32", 9)
        for n, (role, code) in enumerate(zip(roles, codes, strict=True))
    )
    assert ignored(Hazard(kind, "something", involved=involved)) == left_out
