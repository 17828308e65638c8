"""Filters of the race checks let through whatever may race."""

import itertools
from types import SimpleNamespace
from typing import cast

from simulator.memory.site import FREES, Site
from simulator.races.shadow.conflicts import WRITTEN, race_kind, use

SITES = [
    cast(
        Site,
        SimpleNamespace(
            access=access, operation=operation, strong=strong or access == "atomic",
            has_narrow_scope=narrow, volatile=volatile, size=size,
        ),
    )
    for access, operation in (("load", ""), ("store", ""), ("atomic", "add"), ("store", FREES))
    for strong, narrow in ((False, False), (True, False), (True, True))
    for volatile in {False, strong and access != "atomic"}
    for size in (4, 8)
]  # fmt: skip


def test_accesses_of_one_use_do_not_race() -> None:
    """But for what is written, and for ``free``, which is weak."""
    for one, other in itertools.product(SITES, repeat=2):
        how = race_kind(one, other)
        assert how == race_kind(other, one)
        if use(one) == use(other) != WRITTEN and FREES not in (one.operation, other.operation):
            assert how == "", (one, other)


def test_what_a_pair_lacks_is_named() -> None:
    found = {race_kind(*pair) for pair in itertools.product(SITES, repeat=2)}
    assert found == {"", "race", "size", "scope", "volatile", "freed"}
