"""Report of a search for fixes, printed after the findings."""

import re

from simulator import Hazard
from simulator.fixes import BUDGET, INTERRUPTED, TIME, Watch
from simulator.hazards.kinds import UPDATES
from simulator.hazards.wording.text import fix_lines, wrap

from ..check.checker import Verdict
from .findings import ONE_UPDATE, beneath, count, telling, together
from .layout import columns, wrapped

_BARRIER = r"__sync(threads|warp)\(\);|[\w:()]+\.sync\(\);"
_WHY = {
    BUDGET: "; the search's budget is used up",
    TIME: "; the time given is over",
    INTERRUPTED: "; the search was interrupted",
}


def fixes_text(verdict: Verdict) -> str:
    """Return each fix with its hazards, obstacles to others, and how the search ended."""
    if verdict.search is None:
        return ""
    groups: dict[int, list[Hazard]] = {}
    for hazard in verdict.hazards:
        if hazard.fix:
            groups.setdefault(hazard.fix.group, []).append(hazard)
    parts = [_fix_text(sorted(group, key=telling)) for group in groups.values()]
    why: dict[tuple[str, ...], list[Hazard]] = {}
    shown = {id(group[0]) for group in together(verdict.hazards)}
    for hazard, known in zip(verdict.hazards, verdict.notes_before, strict=True):
        if hazard.notes[known:] and id(hazard) in shown:
            why.setdefault(hazard.notes[known:], []).append(hazard)
    for notes, hazards in why.items():
        found = [wrap(hazard.in_short(), columns(), others="  ") for hazard in hazards]
        lines = [line for several in found for line in several]
        lines += [line for note in notes for line in wrap(note, columns(), "  ", "    ")]
        parts.append("\n".join(lines))
    if said := unfound(verdict):
        parts.append(wrapped(said))
    return "\n\n".join(parts)


def unfound(verdict: Verdict) -> str:
    """Return for how many hazards no fix was found, and how many edits were tried; or ``""``."""
    search = verdict.search
    without = sum(hazard.fix is None for hazard in verdict.hazards)
    if search is None or not without:
        return ""
    if not (search.tried or search.ended):  # nothing is looked for but what orders accesses
        races = any(hazard.row.is_race and hazard.fix is None for hazard in verdict.hazards)
        return "no fix found: no edit is known to try" if races else ""
    of = f" for {without} of {count(len(verdict.hazards), 'hazard')}"
    of = of if without < len(verdict.hazards) else ""
    return f"no fix found{of}: {_tried(search)}"


def _tried(search: Watch) -> str:
    were = "was" if search.tried == 1 else "were"
    return f"{count(search.tried, 'edit')} {were} tried{_WHY.get(search.ended, '')}"


def _fix_text(group: list[Hazard]) -> str:
    """Return a fix below the first hazard that it removes, with the others."""
    first, *others = group
    assert first.fix is not None
    lines = [*wrap(first.in_short(), columns(), others="  "), *fix_lines(first.fix, columns())]
    if not others:
        return "\n".join(lines)
    many = len(first.fix.places)
    what = "barrier" if re.fullmatch(_BARRIER, first.fix.text) else "statement"
    few = {1: "one ", 2: "two "}.get(many, "")
    state = "wrong" if first.fix.where.startswith("for ") else "missing"
    cause = f"{few}{state} {what}{'s explain' if many > 1 else ' explains'}"
    if first.case in UPDATES and "atomic" in first.fix.text:
        cause = ONE_UPDATE
    return "\n".join([*lines, *beneath(f"{cause} these {len(group)}", others)])
