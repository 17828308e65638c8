"""The report of a check, and of ``--demonstrate``."""

import re

from simulator import CHECKS, Hazard
from simulator.hazards.kinds import REACHES, UPDATES
from simulator.hazards.text import wrap

from ..checker import Verdict
from ..demonstrate import SCHEDULES, Difference
from .layout import columns, percent, shape, told, wrapped
from .report import result

_BARRIER = r"__sync(threads|warp)\(\);|[\w:()]+\.sync\(\);"


def findings(verdict: Verdict, most: int) -> str:
    """Header, hazards (``most`` of them; 0: all) and what was looked at."""
    groups = _groups(verdict.hazards)
    shown = groups[:most] if most else groups
    parts = [header(verdict), *(_together(group) for group in shown)]
    hidden = len(verdict.hazards) - sum(map(len, shown))
    if hidden:
        parts.append(f"(and {hidden} more: --max 0 shows all)")
    parts.append("\n".join(footer(verdict)))
    return "\n\n".join(parts)


def _groups(hazards: list[Hazard]) -> list[list[Hazard]]:
    """Hazards of one cure side by side, or of one update, in the order of their first ones."""
    found: dict[object, list[Hazard]] = {}
    for number, hazard in enumerate(hazards):
        key: tuple[object, ...] = ("alone", number)
        if hazard.cure:
            key = "cure", hazard.cure.group
        elif hazard.case in UPDATES:
            key = "update", hazard.space, hazard.variable, hazard.places
        found.setdefault(key, []).append(hazard)
    return [sorted(group, key=_telling) for group in found.values()]


def _telling(hazard: Hazard) -> tuple[bool, int]:
    """Of one update's hazards those come first that say most: that it is lost, and how far."""
    lost = hazard.case == UPDATES[0]
    return not lost, -list(REACHES).index(hazard.reach) if lost else 0


def _together(group: list[Hazard]) -> str:
    """The first hazard in full, the others with a line or two each."""
    first, *others = group
    if not others:
        return told(first)
    many = len(first.cure.places) if first.cure is not None else 1
    barrier = first.cure is None or re.fullmatch(_BARRIER, first.cure.text)
    what = "barrier" if barrier else "statement"
    few = {1: "one ", 2: "two "}.get(many, "")
    state = "wrong" if first.cure is not None and first.cure.where.startswith("for ") else "missing"
    cause = f"{few}{state} {what}{'s explain' if many > 1 else ' explains'}"
    cause += f" these {len(group)}"
    if first.case in UPDATES and (first.cure is None or "atomic" in first.cure.text):
        cause = f"one update in several steps explains these {len(group)}"
        cause += "" if first.cure else " (an atomic operation does it in one)"
    lines = [told(first), *wrap(f"{cause}: the above and", columns(), "  ", "  ")]
    for hazard in others:
        lines += wrap(hazard.in_short(), columns(), "    ", "      ")
    return "\n".join(lines)


def header(verdict: Verdict) -> str:
    """``1 error in NAME, grid 4x4, block 16x16 (all checks ran)``."""
    run = verdict.runs[0]
    found = [count(verdict.errors, "error")] if verdict.errors else []
    found += [count(verdict.warnings, "warning")] if verdict.warnings else []
    known = verdict.set_aside
    found = found or [f"no hazards but {known:,} known" if known else "no hazards"]
    found += [count(len(verdict.doubts), "doubtful argument")] if verdict.doubts else []
    text = f"{', '.join(found)} in {verdict.target.name}, {launch(verdict)}"
    missing = [check for check in CHECKS if check not in run.checked]
    if missing:
        text += f" (checked: {', '.join(run.checked)}; not checked: {', '.join(missing)})"
    else:
        text += " (all checks ran)"
    if verdict.refused:
        text += f"; the {', '.join(verdict.refused)} build could not be checked"
    return wrapped(text)


def launch(verdict: Verdict) -> str:
    """The launch shape."""
    run = verdict.runs[0]
    return f"grid {shape(run.grid)}, block {shape(run.block)}"


def footer(verdict: Verdict) -> list[str]:
    """What was looked at, and how far a clean verdict reaches."""
    run = verdict.runs[0]
    lines = []
    if not verdict.hazards:
        lines.append(wrapped(f"checked: {', '.join(run.checked)}"))
    which = " and ".join(verdict.builds)
    built = "the PTX as given" if which == "ptx" else f"{which} build"
    lines.append(f"on: {built}{'s' if len(verdict.builds) > 1 else ''}; schedule {run.schedule}")
    lines += refusals(verdict)
    for build, agreement in verdict.results:
        text = result(agreement) + (f" ({build} build)" if build != "ptx" else "")
        if not agreement.within and any(hazard.row.causes for hazard in verdict.hazards):
            text += "; it may follow from the above: look again once that is mended"
        lines.append(wrapped(text))
    lines += [wrapped(f"argument: {doubt}") for doubt in verdict.doubts]
    lines += [wrapped(f"note: {note}") for note in verdict.notes]
    if verdict.left_out:
        lines.append(f"left out by the policy chosen: {count(verdict.left_out, 'hazard')}")
    if verdict.set_aside:
        lines.append(f"ignored by comments or the baseline: {count(verdict.set_aside, 'hazard')}")
    if not verdict.errors:
        lines += reach(verdict)
    return lines


def refusals(verdict: Verdict) -> list[str]:
    """The builds that could not be checked, and why."""
    return [
        "\n".join(
            piece
            for line in f"not checked: {build} build: {reason}".splitlines()
            for piece in wrap(line, columns(), others="  ")
        )
        for build, reason in verdict.refused.items()
    ]


def reach(verdict: Verdict) -> list[str]:
    """Whether the verdict holds for other contents of the arrays too."""
    steered = [run.data_dependence for run in verdict.runs if run.data_dependence]
    if not steered:
        return ["reach: every content of the arrays, at this launch shape"]
    place = steered[0]
    text = f"reach: these inputs alone; what arrays hold may steer the kernel at {place}"
    return [wrapped(text), *code(place.code)]


def code(text: str) -> list[str]:
    """A line of code, indented and cut to the width."""
    clipped = text if len(text) <= columns() - 4 else text[: columns() - 7] + "..."
    return [f"    {clipped}"] if text else []


def count(number: int, noun: str) -> str:
    """``1 error``, ``2 errors``."""
    return f"{number:,} {noun}{'s' if number != 1 else ''}"


_TRIED = f"{len(SCHEDULES)} schedules (lockstep, warps, reverse, seeds 0 to {SCHEDULES[-1]})"


def demonstration(difference: Difference | None, racy: bool) -> str:
    """What ``--demonstrate`` has to say."""
    if difference is None:
        text = f"demonstration: the same bits under {_TRIED}"
        if racy:
            text += "; the race is there nevertheless: no schedule tried here shows it"
        return wrapped(text)
    d = difference
    place = f"{d.array}[{', '.join(str(i) for i in d.index)}]"
    width = max(len(d.first), len(d.second), len("reference"))
    lines = [f"demonstration, {d.build} build: {place} depends on the schedule"]
    if d.first == "reference":
        lines = [f"demonstration, {d.build} build: {place} is wrong under {d.second}"]
    lines.append(f"  {d.first:<{width}}  {d.values[0]}")
    lines.append(f"  {d.second:<{width}}  {d.values[1]}")
    if d.reference is not None and d.first != "reference":
        lines.append(f"  {'reference':<{width}}  {d.reference}")
    share = percent(d.count / d.elements)
    lines.append(f"  {d.count:,} of {d.elements:,} elements differ ({share})")
    if not racy and d.first != "reference":
        lines.append(
            wrapped(
                "  no race was found: the order of floating-point atomics, perhaps, which "
                "no barrier fixes"
            )
        )
    return "\n".join(lines)
