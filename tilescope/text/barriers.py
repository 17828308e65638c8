"""Report of ``tilescope barriers``: each barrier, with the hazards without it."""

from collections.abc import Sequence

from simulator import Hazard, Run
from simulator.fixes import BarrierVerdict
from simulator.hazards.wording.text import placed, wrap

from .findings import count
from .layout import columns, shape, wrapped


def barriers(name: str, run: Run, verdicts: Sequence[BarrierVerdict]) -> str:
    """Return a header, and two or more lines for each barrier."""
    build = "" if run.build == "ptx" else f" ({run.build} build)"
    which = f"{name}, grid {shape(run.grid)}, block {shape(run.block)}{build}"
    if not verdicts:
        return wrapped(f"no barrier in {which}")
    parts = [wrapped(f"{count(len(verdicts), 'barrier')} in {which}")]
    if run.hazards:
        there = count(len(run.hazards), "hazard")
        parts.append(wrapped(f"{there} with all barriers in place: not counted below"))
    parts += [_verdict(verdict) for verdict in verdicts]
    if not all(verdict.needed for verdict in verdicts):
        parts.append("another size or block shape may need what this launch does not")
    return "\n\n".join(parts)


def _verdict(verdict: BarrierVerdict) -> str:
    head = placed("", verdict.source, columns())
    number, of = verdict.which
    copies = f"{verdict.copies} in the PTX, taken out together" if verdict.copies > 1 else ""
    which = f"barrier {number} of {of} in this line" if of > 1 else ""
    notes = [f"  {'; '.join(filter(None, (which, copies)))}"] if which or copies else []
    if not verdict.needed:
        return "\n".join([head, *notes, "  no hazard in this launch without it"])
    more = len(verdict.hazards) - 1
    text = f"needed: {_line(verdict.hazards[0])}"
    if more:
        text += f" (and {count(more, 'more hazard')})"
    return "\n".join([head, *notes, *wrap(text, columns(), "  ", "    ")])


def _line(hazard: Hazard) -> str:
    """Return a hazard and its places in one sentence."""
    places = list(dict.fromkeys(str(source) for source in hazard.sources))
    mild = "warning: " if hazard.severity == "warning" else ""
    where = places and not hazard.heading  # which names the lines
    return mild + hazard.title + (f", {' and '.join(places)}" if where else "")
