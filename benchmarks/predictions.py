"""``python -m benchmarks.predictions``: writes ``docs/predicted.md``, predictions beside readings.

Predicts every launch that ``benchmarks.readings`` knows of; some minutes, and no GPU. Writes
``simulator/prediction/errors.json`` as well: how far off nine in ten are. With words, launches
whose case has one of them, on standard output.
"""

import json
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.adjusted import GPU, left_out
from benchmarks.machine import table
from benchmarks.readings import FAMILIES, Held, Reading, held, off, readings
from simulator.gpus.table import find
from simulator.prediction.rates import ADJUSTED, rates

_ROOT = Path(__file__).parents[1]
PAGE, ERRORS = _ROOT / "docs/predicted.md", _ROOT / "simulator/prediction/errors.json"
_LEAST = 60.0
"""Percent of its peak from which on a part of the GPU is the limit; below, waiting is."""
_L1 = ("l1", "shared")
_WAITING = ("latency", "launch", "atomics")
_LARGE = 1e7
"""Bytes of DRAM traffic from which on it is judged."""


def right_limiter(reading: Reading, limiter: str) -> bool:
    """Whether the part named is within 5 points of the busiest; or none is busy, and it waits."""
    busy = {part: reading.ncu[part] for part in ("l1", "l2", "dram", "issue")}
    highest = max(busy.values())
    named = "l1" if limiter in _L1 else limiter
    if named in _WAITING:
        return highest < _LEAST
    return busy.get(named, busy["issue"]) >= highest - 5


def main() -> None:
    """Write the page, or print some of it."""
    some, words = readings(), sys.argv[1:]
    if words:
        some = [r for r in some if any(word in r.case for word in words)]
    found = []
    for one in held(some):
        print(f"{one.reading.gpu} {one.reading.case}", file=sys.stderr)
        found.append(one)
    if words:
        print("\n".join(_launches(found)))
        return
    ERRORS.write_text(json.dumps(measured_errors(found), indent=1) + "\n")
    PAGE.write_text("\n".join(page(found)) + "\n")


def page(found: Sequence[Held]) -> list[str]:
    """The lines of ``docs/predicted.md``."""
    main = [one for one in found if one.reading.main]
    more = [one for one in found if not one.reading.main]
    return [
        "# Predicted", "",
        f"What `tilescope predict` says of {len(main)} launches of the library on an H200, beside",
        "what was measured there (`tests/ground_truth/README.md`). Written by",
        "`python -m benchmarks.predictions`. Constants were adjusted on the half marked *;",
        f"these are {', '.join(f'`{name}`' for name in ADJUSTED)}",
        "(`simulator/prediction/rates.py` says what each is).", "",
        *table(_HEAD, _summary(main)), "",
        *table(["", "right", "of"], _others(main)), "",
        "Each family, foretold by constants that were adjusted without it on the half marked *,",
        "from what `benchmarks.gpu` measured on (`benchmarks/adjusted.py`),",
        "and which of them came out more than a quarter from those in use.", "",
        *_left_out(main), "",
        "Launches on which nothing was adjusted: further ones of the library, the same on an H100,",
        "and kernels unlike the library's (`benchmarks/others.py`).", "",
        *table(_HEAD, _further(more)), "",
        "The ranges that a prediction shows, by how far off nine in ten are at most"
        " (`simulator/prediction/error_bounds.py`):", "",
        *table(["", "off by"], [[name, f"{100 * value:.0f} %"]
                                for name, value in measured_errors(found).items()]), "",
        "## The launches that constants were adjusted on, and their other half", "",
        *_launches(main), "",
        "## Further launches", "",
        *_launches(more),
    ]  # fmt: skip


_HEAD = ["launches", "median error", "nine in ten within", "largest"]


def measured_errors(found: Sequence[Held]) -> dict[str, float]:
    """What nine in ten launches are off by at most, as ``prediction/error_bounds.py`` reads it."""
    errors: dict[str, list[float]] = {
        name: []
        for name in (
            "time", "dram_read_once", "dram_read_again", "dram_written", "l1_hits", "l2_hits",
        )
    }  # fmt: skip
    for one in found:
        reading, said = one.reading, one.said
        if not reading.tuned:
            errors["time"].append(one.error)
        if not reading.ncu:
            continue
        if reading.ncu["dram_read"] > _LARGE:
            again = "dram_read_again" if one.again else "dram_read_once"
            errors[again].append(off(said.dram_read_bytes, reading.ncu["dram_read"]))
        if reading.ncu["dram_write"] > _LARGE:
            errors["dram_written"].append(off(said.dram_write_bytes, reading.ncu["dram_write"]))
        for level, rate in (("l1", said.l1_hit_rate), ("l2", said.l2_hit_rate)):
            true = reading.hit_rate(level)
            if rate is not None and true is not None:
                errors[f"{level}_hits"].append(abs(rate - true))
    return {name: round(_ninth(some), 3) for name, some in errors.items()}


def _left_out(main: Sequence[Held]) -> list[str]:
    """Each family foretold by constants that were adjusted without it."""
    families: dict[str, Callable[[str], bool]] = {
        name: lambda case, name=name: case.startswith(name)  # type: ignore[misc]
        for name in FAMILIES
    }
    tuned = {one.reading.case for one in main if one.reading.tuned}
    launches = [one.kept for one in main]
    rows, usual = [], rates(GPU)
    for name, (known, errors) in left_out(launches, families, lambda c: c in tuned).items():
        moved = [
            f"`{one}`"
            for one in ADJUSTED
            if not 0.8 < getattr(known, one) / getattr(usual, one) < 1.25
        ]
        rows.append([f"{name} ({len(errors)})", *_cells(errors), ", ".join(moved) or "none"])
    return table(["left out", *_HEAD[1:], "moved"], rows)


def _summary(found: Sequence[Held]) -> list[list[str]]:
    parts = {
        "all": list(found),
        "adjusted on": [one for one in found if one.reading.tuned],
        "held back": [one for one in found if not one.reading.tuned],
    }
    parts |= {
        name: [one for one in found if one.reading.case.startswith(name)] for name in FAMILIES
    }
    return _rows(parts)


def _further(found: Sequence[Held]) -> list[list[str]]:
    parts: dict[str, list[Held]] = {}
    for one in found:
        kind = "library" if ":" in one.reading.case else "others"
        parts.setdefault(f"{find(one.reading.gpu).name}, {kind}", []).append(one)
    return _rows(dict(sorted(parts.items())))


def _rows(parts: Mapping[str, Sequence[Held]]) -> list[list[str]]:
    return [
        [f"{name} ({len(some)})", *_cells([one.error for one in some])]
        for name, some in parts.items()
        if some
    ]


def _cells(errors: Sequence[float]) -> list[str]:
    """Median, what nine in ten are within, and the largest."""
    return [
        f"{100 * cell:.0f} %" for cell in (statistics.median(errors), _ninth(errors), max(errors))
    ]


def _ninth(errors: Sequence[float]) -> float:
    """What nine in ten are within."""
    ordered = sorted(errors)
    return ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))] if ordered else 0.0


def _others(found: Sequence[Held]) -> list[list[str]]:
    """Order of pairs of one size, limiters, DRAM bytes and hit rates."""
    pairs = right = 0
    for number, first in enumerate(found):
        one = first.reading
        for second in found[:number]:
            other = second.reading
            family = one.case.split("_")[0] == other.case.split("_")[0]
            same = one.case.split(":")[1] == other.case.split(":")[1]
            if family and same and max(one.ms, other.ms) > 1.15 * min(one.ms, other.ms):
                pairs += 1
                right += (one.ms < other.ms) == (first.said.time_ms < second.said.time_ms)
    limits = sum(right_limiter(one.reading, one.said.limiter) for one in found)
    moved = [
        abs(said / one.reading.ncu[name] - 1) <= 0.1
        for one in found
        for name, said in (
            ("dram_read", one.said.dram_read_bytes), ("dram_write", one.said.dram_write_bytes),
        )
        if one.reading.ncu[name] > _LARGE
    ]  # fmt: skip
    hits = [
        abs(one.said.l1_hit_rate - true) <= 0.05
        for one in found
        if one.said.l1_hit_rate is not None and (true := one.reading.hit_rate("l1")) is not None
    ]
    return [
        ["pairs of one size in order, where they differ by 15 %", str(right), str(pairs)],
        ["limiters", str(limits), str(len(found))],
        ["DRAM bytes within 10 %, where over 10 MB", str(sum(moved)), str(len(moved))],
        ["L1 hit rates within 5 points", str(sum(hits)), str(len(hits))],
    ]


def _launches(found: Sequence[Held]) -> list[str]:
    head = [
        "launch", "GPU", "us", "predicted", "limited by", "ncu: L1 L2 DRAM issue %", "DRAM read MB",
        "predicted", "written MB", "predicted", "L1 hit %", "predicted",
    ]  # fmt: skip
    return table(head, [_row(one) for one in found])


def _row(one: Held) -> list[str]:
    reading, p = one.reading, one.said
    ncu: Mapping[str, Any] = reading.ncu

    def read(name: str, unit: float) -> str:
        return f"{ncu[name] / unit:.1f}" if ncu else "-"

    hits = reading.hit_rate("l1") if ncu else None
    return [
        f"{reading.case}{' *' if reading.tuned else ''}", reading.gpu,
        f"{1e3 * reading.ms:.1f}", f"{1e3 * p.time_ms:.1f}", p.limiter,
        " ".join(f"{ncu[part]:.0f}" for part in ("l1", "l2", "dram", "issue")) if ncu else "-",
        read("dram_read", 1e6), f"{p.dram_read_bytes / 1e6:.1f}",
        read("dram_write", 1e6), f"{p.dram_write_bytes / 1e6:.1f}",
        "-" if hits is None else f"{100 * hits:.0f}", f"{100 * (p.l1_hit_rate or 0):.0f}",
    ]  # fmt: skip


if __name__ == "__main__":
    main()
