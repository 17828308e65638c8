"""Titles of races: what is missing, what is accessed too early, and in which lines."""

from __future__ import annotations

from collections.abc import Iterable

from ..hazard import Hazard
from ..participants import Participant
from ..race_cases import EQUAL, LOOK, OVERRUN, REACHES, TOO_FEW, UPDATES
from ..wording.leads import BARRIER, FENCE, RACE, WAIT, WARP_BARRIER

_COLLIDE = "Colliding writes"
_LEADS = {
    "lane": WARP_BARRIER, "warp": BARRIER, "block": "Race between blocks",
}  # fmt: skip
"""What is missing, by how far the threads are apart."""
_CASES = {
    "far": "Missing cluster barrier",
    "scope": "Atomic of too narrow a scope",
    "steps": "Atomic in two steps",
    "size": "Accesses of two sizes",
    "freed": "Use of freed memory",
    "volatile": "volatile orders nothing",
    "polled": "volatile orders nothing",
    "volatile lanes": "volatile orders nothing",
    "silent": "Atomic that changes nothing",
    "flag": FENCE,
    "proxy": "Missing fence.proxy.async",
    OVERRUN: "Overrun of another array",
}
"""What is wrong, by the case, where the distance does not say it."""
_OTHERS = {"lane": "other lanes of the warp", "warp": "other warps", "block": "other blocks"}
_SEVERAL = {"lane": "several lanes of a warp", "warp": "several warps", "block": "several blocks"}
_ENGINES = {
    "copy": "the asynchronous copy", "product": "the wgmma",
    **dict.fromkeys(("bulk", "transaction", "sent"), "the copy in bulk"),
}  # fmt: skip
"""What is under way, by the case: it has to be waited for."""


def race_title(hazard: Hazard) -> str:
    """Return the title of a race, after races with the same cause are joined."""
    names = (hazard.variable, *hazard.also)
    what = f"{hazard.space} {_listed([f'`{name}`' for name in names])}"
    if hazard.variable == f"{hazard.space} memory":  # no variable's
        what = hazard.variable
    is_, it = ("are", "them") if hazard.also else ("is", "it")
    reads = [item for item in hazard.involved if item.role == "read"]
    writes = [item for item in hazard.involved if item.role != "read"]
    every, read, written = (lines_of(some) for some in (hazard.involved, reads, writes))
    near = hazard.reach in _OTHERS
    others = _OTHERS.get(hazard.reach, _ENGINES.get(hazard.case, REACHES.get(hazard.reach, "")))
    several = _SEVERAL.get(hazard.reach, others)
    if hazard.case == LOOK and reads:
        return (
            f"Look and write in two steps: {what} {is_} looked at ({read}) and then written "
            f"({written}), and {others} may come between"
        )
    if hazard.case in UPDATES:
        return f"Lost update: {what} {is_} read, changed and written ({every}) by {several} at once"
    if hazard.case == EQUAL:
        return f"Equal writes: {what} {is_} written ({every}) by {several}, with the same value"
    if hazard.case == "one instruction":
        return (
            f"Colliding writes: {what} {is_} written ({every}) by {several}, with different values"
        )
    lead = _CASES.get(hazard.case) or _LEADS.get(hazard.reach, RACE)
    if hazard.case in _ENGINES:
        lead = WAIT
    if any(note.startswith(TOO_FEW.partition(",")[0]) for note in hazard.notes):
        lead = "Wait for too few groups"
    has = "have" if near else "has"
    if not reads or not writes:
        if len({item.source for item in hazard.involved}) < 2 and lead == BARRIER:
            lead = _COLLIDE
        how = f"by {several}, in no order" if near else f"while {others} is under way"
        return f"{lead}: {what} {is_} written ({every}) {how}"
    if hazard.case == "proxy":
        how = f"by the asynchronous proxy, with no fence behind the write ({written})"
        return f"{lead}: {what} {is_} read ({read}) {how}"
    if hazard.involved[0].role != "read":
        return f"{lead}: {what} {is_} read ({read}) before {others} {has} written {it} ({written})"
    return f"{lead}: {what} {is_} overwritten ({written}) before {others} {has} read {it} ({read})"


def lines_of(items: Iterable[Participant]) -> str:
    """``line 27``, ``lines 24 and 25``, ``line 27 and util.h:9``."""
    sources = list(dict.fromkeys(item.source for item in items))
    own = sorted({s.line for s in sources if s.line and s.file == sources[0].file})
    texts = [str(number) for number in own]
    if texts:
        texts[0] = f"line{'s' if len(texts) > 1 else ''} {texts[0]}"
    elsewhere = (s for s in sources if not s.line or s.file != sources[0].file)
    texts += dict.fromkeys(map(str, elsewhere))
    return _listed(texts)


def _listed(texts: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))
