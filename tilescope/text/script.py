"""Report of ``tilescope exec``."""

import textwrap
from collections.abc import Sequence
from pathlib import Path

from kernels.source_access import display_path
from simulator import Hazard
from simulator.hazards.folding import fold_causes
from simulator.observe.counters.traffic import Traffic

from ..sessions.recorded_launch import Predicted, RecordedLaunch
from ..sessions.recording import Session, distinct
from .findings import count
from .launches import command, spelled_options
from .layout import columns, hazard_text, milliseconds, wrapped

_CUDA = (".cu", ".cuh")
_MAX_LAUNCHES = 5
"""Hazards of a kernel that are shown in full."""


def summary(
    session: Session, unchecked: dict[str, int], options: Sequence[str] = (),
    is_interrupted: bool = False,
) -> str:  # fmt: skip
    """Return the launches by place, their counters, and hazards.

    ``options``: NVRTC options that the program's kernels need. ``is_interrupted``: whether a
    launch may have been cut off.
    """
    places = session.places()
    kernels = {name for name, _, _ in places}
    found = hazards(session)
    head = f"{count(len(session.launches), 'launch').replace('launchs', 'launches')}"
    checked = sum(bool(launch.run.checked) for launch in session.launches)
    clean = "no hazards" if checked else "not checked"
    if 0 < checked < len(session.launches):
        clean = f"no hazards in the {checked:,} checked"
    if not session.launches:
        none = "no launch ended" if is_interrupted else "no kernel was launched"
        head = "no kernel was checked" if unchecked else f"{none}, so none was checked"
        clean = ""
    known = session.set_aside.total()
    if session.launches:
        head += f" of {count(len(kernels), 'kernel')}"
        clean += _ignored(known)
    parts = ["; ".join(filter(None, (head, _found(found, clean))))]
    for (name, file, line), some in places.items():
        known_here = session.set_aside[name, file, line]
        place = f"  {display_path(file)}:{line}" if file else ""
        parts.append(_place(name + place, some, known_here))
    parts += [str(hazard) for hazard in session.order.hazards]
    if left_out := session.left_out.total():
        parts.append(f"left out by the policy chosen: {count(left_out, 'hazard')}")
    if known:
        parts.append(f"ignored by comments: {count(known, 'hazard')}")
    if unchecked:
        many = ", ".join(f"{n} of {name}" for name, n in unchecked.items())
        parts.append(wrapped(f"not checked: {many}"))
    parts += [
        wrapped(text) for text in (*_unchecked_parts(session), _predicted_sum(session)) if text
    ]
    if alone := _alone(session, options):
        parts += ["", alone, ""]
    return "\n".join(parts)


def _unchecked_parts(session: Session) -> list[str]:
    """Return what could not be checked in some launch, a sentence each."""
    notes = (note for launch in session.launches for note in launch.run.notes)
    return list(dict.fromkeys(note for note in notes if note.startswith("not checked")))


def _predicted_sum(session: Session) -> str:
    """Return the predicted time of all launches together; empty if none was requested."""
    made = Predicted.of(session.launches)
    missing = [f"{_launches(number)} not predicted: {why}" for why, number in made.missing.items()]
    if made.ms is None:
        return "; ".join(missing)
    total = (
        f"predicted on {made.gpu}: {milliseconds(made.ms)}, the sum of {_launches(made.launches)}"
    )
    return "; ".join([total, *missing])


def _alone(session: Session, options: Sequence[str]) -> str:
    """Return a command for one launch of a CUDA C++ file, preferably one with a hazard."""
    known = [
        one for one in session.launches
        if one.checked and one.words and one.file.endswith(_CUDA) and not _is_linked(one)
    ]  # fmt: skip
    launch = max(known, key=lambda one: bool(one.run.hazards), default=None)
    if launch is None:
        return ""
    words = display_path(launch.file), *launch.words
    words = (*words, *spelled_options(options))
    head = (
        f"{launch.kernel.name} alone, with arrays of the same sizes and other contents; view and "
        "predict take the same words:"
    )
    return "\n".join([wrapped(head), *command(words, "  ", "check")])


def _is_linked(launch: RecordedLaunch) -> bool:
    """Whether a kernel may need device code of other files, so that its own does not compile."""
    units = {Path(file).resolve() for file in launch.kernel.sources if file.endswith(".cu")}
    return len(units) > 1


def hazards(session: Session) -> list[Hazard]:
    """Return each cause once for all launches of a kernel from one place."""
    found = [h for some in session.places().values() for h in fold_causes(distinct(some))]
    return found + session.order.hazards


def _launches(number: int) -> str:
    return f"{number:,} launch{'es' if number != 1 else ''}"


def _found(found: list[Hazard], clean: str) -> str:
    """Return ``2 hazards`` or ``no hazards, 1 note``; ``clean``: the text for none."""
    notes = sum(hazard.severity == "note" for hazard in found)
    wrong = len(found) - notes
    said = count(wrong, "hazard") if wrong else clean
    return ", ".join(filter(None, (said, count(notes, "note") if notes else "")))


def _ignored(known: int) -> str:
    return f" but {known:,} ignored" if known else ""


def _place(place: str, some: list[RecordedLaunch], known: int) -> str:
    predicted = Predicted.of(some)
    time = f", predicted {milliseconds(predicted.ms)}" if predicted.ms is not None else ""
    lines = [f"  {place}  {_launches(len(some))}{time}"]
    all_counters = [launch.run.counters for launch in some]
    loads = sum((c.global_load for c in all_counters), Traffic())
    stores = sum((c.global_store for c in all_counters), Traffic())
    said = []
    for kind, traffic in (("loads", loads), ("stores", stores)):
        if traffic.requests:
            asked = traffic.sectors * 32 / max(1, traffic.bytes)
            said.append(
                f"global {kind} {traffic.sectors_per_request:.1f} sectors a request, "
                f"{asked:.1f}x the bytes asked for"
            )
    found = fold_causes(distinct(some))
    checked = any(launch.run.checked for launch in some)
    clean = "no hazards" if checked else "not checked"
    said.append(_found(found, clean + _ignored(known)))
    lines += textwrap.wrap(
        "; ".join(said), columns(), initial_indent="    ", subsequent_indent="    "
    )
    for hazard in found[:_MAX_LAUNCHES]:
        lines += ["", hazard_text(hazard)]
    if found:
        lines.append("")
    if len(found) > _MAX_LAUNCHES:
        lines.append(f"    (and {len(found) - _MAX_LAUNCHES} more: --json has all)")
    return "\n".join(lines)
