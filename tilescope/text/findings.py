"""Report of ``tilescope check``, and of ``--demonstrate``."""

import dataclasses
from collections import Counter
from collections.abc import Sequence

from simulator import CHECKS, Hazard
from simulator.hazards.kinds import REACHES, UPDATES
from simulator.hazards.wording.text import each_once, wrap

from ..check.checker import Verdict
from ..check.demonstrate import SCHEDULES, Difference
from .layout import columns, hazard_text, percent, shape, wrapped
from .report import result

ONE_UPDATE = "one update in several steps explains"


def findings(verdict: Verdict, max_hazards: int) -> str:
    """Return header, hazards (at most ``max_hazards``; 0: all) and the scope of the check."""
    groups = together(verdict.hazards)
    shown = groups[:max_hazards] if max_hazards else groups
    parts = [header(verdict), *(_hazard_text(group) for group in shown)]
    hidden = len(verdict.hazards) - sum(map(len, shown))
    if hidden:
        parts.append(f"(and {hidden} more: --max 0 shows all)")
    parts.append("\n".join(footer(verdict)))
    return "\n\n".join(parts)


def together(hazards: list[Hazard]) -> list[list[Hazard]]:
    """Group hazards of one update, in the order of the first of each group."""
    found: dict[object, list[Hazard]] = {}
    for number, hazard in enumerate(hazards):
        key: tuple[object, ...] = ("alone", number)
        if hazard.case in UPDATES:
            key = hazard.space, hazard.variable, hazard.places
        found.setdefault(key, []).append(hazard)
    return [sorted(group, key=telling) for group in found.values()]


def telling(hazard: Hazard) -> tuple[bool, int]:
    """Sort key for hazards of one update: lost updates first, then by reach."""
    lost = hazard.case == UPDATES[0]
    return not lost, -list(REACHES).index(hazard.reach) if lost else 0


def _hazard_text(group: list[Hazard]) -> str:
    """Return the first hazard in full, and the others in a line or two each."""
    first, *others = group
    if not others:
        return _found(first)
    cause = f"{ONE_UPDATE} these {len(group)} (an atomic operation does it in one)"
    return "\n".join([_found(first), *beneath(cause, others)])


def _found(hazard: Hazard) -> str:
    """Return a hazard's text without its fix, which follows after all hazards."""
    return hazard_text(dataclasses.replace(hazard, fix=None))


def beneath(cause: str, others: Sequence[Hazard]) -> list[str]:
    """Return hazards with the same cause, in a line or two each."""
    lines = wrap(f"{cause}: the above and", columns(), "  ", "  ")
    for text in each_once(hazard.in_short() for hazard in others):
        lines += wrap(text, columns(), "    ", "      ")
    return lines


def header(verdict: Verdict) -> str:
    """Return ``1 error in NAME, grid 4x4, block 16x16 (all checks ran)``."""
    run = verdict.runs[0]
    found = [count(verdict.errors, "error")] if verdict.errors else []
    found += [count(verdict.warnings, "warning")] if verdict.warnings else []
    known, notes = verdict.set_aside, len(verdict.hazards) - verdict.errors - verdict.warnings
    found = found or [f"no hazards but {known:,} known" if known else "no hazards"]
    found += [count(notes, "note")] if notes else []
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


def severities(hazards: Sequence[Hazard]) -> str:
    """Return ``2 errors, 1 warning``; empty without hazards of these."""
    counts = Counter(hazard.severity for hazard in hazards)
    return ", ".join(count(counts[kind], kind) for kind in ("error", "warning") if counts[kind])


def launch(verdict: Verdict) -> str:
    """Return the launch shape as text."""
    run = verdict.runs[0]
    return f"grid {shape(run.grid)}, block {shape(run.block)}"


def footer(verdict: Verdict) -> list[str]:
    """Return what was checked, and the scope of a clean verdict."""
    run = verdict.runs[0]
    lines = []
    if not verdict.errors + verdict.warnings:
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
    lines += [wrapped(f"warning: {doubt}") for doubt in verdict.doubts]
    lines += [wrapped(f"note: {note}") for note in verdict.notes]
    if verdict.left_out:
        lines.append(f"left out by the policy chosen: {count(verdict.left_out, 'hazard')}")
    if verdict.set_aside:
        lines.append(f"ignored by comments or the baseline: {count(verdict.set_aside, 'hazard')}")
    if not verdict.errors:
        lines += reach(verdict)
    return lines


def refusals(verdict: Verdict) -> list[str]:
    """Return the builds that could not be checked, and why."""
    return [
        "\n".join(
            piece
            for line in f"not checked: {build} build: {reason}".splitlines()
            for piece in wrap(line, columns(), others="  ")
        )
        for build, reason in verdict.refused.items()
    ]


def reach(verdict: Verdict) -> list[str]:
    """Return whether the verdict holds for other array contents."""
    steered = [run.data_dependence for run in verdict.runs if run.data_dependence]
    lines = ["reach: every content of the arrays, at this launch shape"]
    if steered:
        place = steered[0]
        text = f"reach: these inputs alone; the verdict may depend on what arrays hold, at {place}"
        lines = [wrapped(text), *code(place.code)]
    return lines + [wrapped(f"reach: {text}") for text in assumed(verdict)]


def assumed(verdict: Verdict) -> list[str]:
    """Return the assumptions of the verdict, a sentence each."""
    orders = sorted({run.one_order for run in verdict.runs if run.one_order})
    found = [f"locks, tickets and counters in the order of this run: {why}" for why in orders[:1]]
    arrays = sorted({name for run in verdict.runs for name in run.padding})
    if not arrays:
        return found
    listed = ", ".join(arrays)
    return [
        *found,
        f"assumed that bytes which no thread writes in any element of {listed} are padding: "
        "no type says how the elements are laid out",
    ]


def code(text: str) -> list[str]:
    """Return a line of code, indented and clipped."""
    clipped = text if len(text) <= columns() - 4 else text[: columns() - 7] + "..."
    return [f"    {clipped}"] if text else []


def count(number: int, noun: str, several: str = "") -> str:
    """Return ``1 error`` or ``2 errors``."""
    return f"{number:,} {noun if number == 1 else several or noun + 's'}"


_TRIED = f"{len(SCHEDULES)} schedules (lockstep, warps, reverse, seeds 0 to {SCHEDULES[-1]})"


def demonstration(difference: Difference | None, racy: bool) -> str:
    """Return the report of ``--demonstrate``."""
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
