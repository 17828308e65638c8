"""Merging of the hazards of a kernel's builds."""

import dataclasses
from collections.abc import Iterable, Sequence

from simulator import Hazard, Run
from simulator.hazards.folding import fold_causes
from simulator.races.report.pairs import MAX_PAIRS

SOURCE_ALONE = "seen in the source build alone"
SOURCE_ONLY = (
    f"{SOURCE_ALONE}, and in the device build under none of four schedules: the optimiser may "
    "have removed it; another compiler may not"
)
DEVICE_ONLY = "seen in the device build alone"


def merge(runs: Sequence[Run], tried: Sequence[Run] | None = None) -> list[Hazard]:
    """Return the hazards of all runs, each finding once with its ``builds``; errors first.

    Two hazards are one finding if kind, severity, space and roles agree, their variables and source
    lines overlap, and races have the same reach. Remaining races of two builds between the same
    lines are one, too: unrolled loops preserve one order of several, and lanes that act at once in
    one build take turns in the other.

    ``tried``: runs of the device build under further schedules, which only add to ``builds``.
    """
    merged = _collapsed(runs[0])
    for run in runs[1:]:
        open_places = set(range(len(merged)))
        remaining: list[Hazard] = []
        for hazard in _collapsed(run):  # exact matches first: an overlap is the second choice
            place = next((i for i in open_places if same_finding(merged[i], hazard)), None)
            if place is None:
                remaining.append(hazard)
            else:
                open_places.remove(place)
                merged[place] = _joined(merged[place], hazard, run.build)
        for is_same in _SAME:
            still: list[Hazard] = []
            for hazard in remaining:
                place = next((i for i in sorted(open_places) if is_same(merged[i], hazard)), None)
                if place is None:
                    still.append(hazard)
                else:
                    open_places.remove(place)
                    merged[place] = _joined(merged[place], hazard, run.build)
            remaining = still
        merged += remaining
    if len(runs) > 1:
        merged = [_everywhere(hazard, runs) for hazard in merged]
        merged = [_in_device(hazard, tried or ()) for hazard in merged]
        merged = [_with_note(hazard, tried is not None) for hazard in merged]
        merged = [_beneath(hazard, merged) for hazard in merged]
    return sorted(fold_causes(merged), key=lambda h: h.severity != "error")


def _collapsed(run: Run) -> list[Hazard]:
    """Return a run's hazards; copies of one source line by unrolling count as one."""
    found: list[Hazard] = []
    for hazard in run.hazards:
        place = next((i for i, other in enumerate(found) if same_finding(other, hazard)), None)
        if place is None:
            found.append(dataclasses.replace(hazard, builds=(run.build,)))
        else:
            first = found[place]
            count, is_capped = first.count + hazard.count, first.capped or hazard.capped
            if first.row.is_race and count > MAX_PAIRS:
                count, is_capped = MAX_PAIRS, True
            found[place] = dataclasses.replace(
                first, count=count, capped=is_capped, fix=first.fix or hazard.fix
            )
    return found


def same_finding(a: Hazard, b: Hazard) -> bool:
    """Whether two hazards say the same of the same variables and source lines."""
    if a.family != b.family or a.variables != b.variables or a.places != b.places:
        return False
    return not a.row.is_endless or (a.case == b.case and _called(a) == _called(b))


def _called(hazard: Hazard) -> list[list[tuple[str, int]]]:
    """Return the call sites of the participants; a waiting function may have several callers."""
    return [[(call.file, call.line) for call in item.calls] for item in hazard.involved]


def _one_thing(a: Hazard, b: Hazard) -> bool:
    """Whether two builds can only mean the same: the launch's end, or a variable's state."""
    return a.row is b.row and (a.row.is_endless or (a.row.once and a.variables == b.variables))


def _meets(a: Hazard, b: Hazard) -> bool:
    """Whether hazards of two builds are one finding with different words.

    One build may know an array that the other knows only as an address. Code without line
    information, such as CUDA's own headers, is identified by its accesses.
    """
    if a.row is b.row and a.row.by_address:
        return a.involved[0].role == b.involved[0].role and bool(a.places & b.places)
    if a.family != b.family or not a.variables & b.variables:
        return False
    if not (a.lines and b.lines):
        return a.message == b.message
    return bool(a.places & b.places)


def _race_alike(a: Hazard, b: Hazard) -> bool:
    """Whether two races are between the same accesses, with another order or severity."""
    return (
        a.row.is_race
        and b.row.is_race
        and (a.space, a.reach) == (b.space, b.reach)
        and bool(a.variables & b.variables)
        and a.places == b.places
        and sorted(part.role for part in a.involved) == sorted(part.role for part in b.involved)
    )


def _says_more(a: Hazard, b: Hazard) -> bool:
    """Whether a hazard names what the other one does, and more, such as the use of a value."""
    same = (a.kind, a.severity, a.space) == (b.kind, b.severity, b.space)
    nested = a.places <= b.places or b.places <= a.places
    begin = a.involved[:1] and b.involved[:1] and a.involved[0].role == b.involved[0].role
    known = a.places and b.places and a.variables & b.variables
    return same and nested and bool(begin and known)


def _everywhere(hazard: Hazard, runs: Sequence[Run]) -> Hazard:
    """Add to a hazard every build in which the same accesses race under other words."""
    more = [
        run.build
        for run in runs
        if run.build not in hazard.builds
        and any(_race_alike(hazard, other) for other in run.hazards)
    ]
    return dataclasses.replace(hazard, builds=(*hazard.builds, *more))


def _joined(a: Hazard, b: Hazard, build: str) -> Hazard:
    """Merge a finding with that of another build, with the lines of the source build.

    An optimiser that merges loads of two branches names one line. Of two severities the worse is
    used, and otherwise the longer list of places.
    """
    follows = (*a.follows, *(h for h in b.follows if not _one_of(h, a.follows)))
    a, b = (dataclasses.replace(one, follows=follows) for one in (a, b))
    longer = not a.row.is_race and a.severity == b.severity and a.places < b.places
    named = a.row.by_address and a.element is None and b.element is not None
    if longer or named or (a.severity, b.severity) == ("warning", "error"):
        return dataclasses.replace(b, builds=(*a.builds, build))
    if build == "source" and a.row.is_race and a.variables == b.variables and a.places != b.places:
        return dataclasses.replace(b, builds=(build, *a.builds))
    return dataclasses.replace(a, builds=(*a.builds, build))


def _one_of(hazard: Hazard, others: Iterable[Hazard]) -> bool:
    """Whether a finding is among others."""
    return any(same_finding(hazard, h) or _race_alike(hazard, h) for h in others)


def _beneath(hazard: Hazard, others: Sequence[Hazard]) -> Hazard:
    """Return a finding without folded ones that stand alone in the other build."""
    follows = tuple(h for h in hazard.follows if not _one_of(h, others))
    return dataclasses.replace(hazard, follows=follows)


_SAME = (_meets, _race_alike, _says_more, _one_thing)


def only_in_source(hazards: Iterable[Hazard]) -> list[Hazard]:
    """Return the hazards that the device build lacks."""
    return [hazard for hazard in hazards if hazard.builds == ("source",)]


def _in_device(hazard: Hazard, tried: Iterable[Run]) -> Hazard:
    """Add the device build to a finding if any of some runs shows it."""
    others = (other for run in tried for other in run.hazards)
    if hazard.builds == ("source",) and any(
        is_same(hazard, other) for other in others for is_same in (same_finding, *_SAME)
    ):
        return dataclasses.replace(hazard, builds=("device", "source"))
    return hazard


def _with_note(hazard: Hazard, tried: bool) -> Hazard:
    """Add a note to a hazard of one build; ``tried``: the device build ran under all schedules."""
    source = SOURCE_ONLY if tried else SOURCE_ALONE
    note = {"source": source, "device": DEVICE_ONLY}.get("".join(hazard.builds))
    note = None if hazard.row.of_machine_code else note
    return dataclasses.replace(hazard, notes=(*hazard.notes, note)) if note else hazard
