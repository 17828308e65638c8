"""Report of ``tilescope sweep``: a table and a figure."""

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from simulator import CHECKS

from .layout import human_bytes, human_count, wrapped

Row = dict[str, Any]
_WHAT = ("kernel", "size", "tile", "gpu", "schedule", "seed")
_SHOWN = 80


def table(rows: Sequence[Row]) -> str:
    """Return the varying columns and the results; predictions are ranked by time."""
    if not rows:
        return "no cells"
    ranked = sorted(rows, key=lambda row: row.get("time_ms", math.inf))
    predicted = any(row["predict"] for row in rows)
    names = [n for n in _WHAT if n == "kernel" or len({str(row[n]) for row in rows}) > 1]
    head = [*names, *(("time", "limiter", "DRAM") if predicted else ("hazards", "result", "sectors",
            "conflicts", "seconds"))]  # fmt: skip
    lines = [head]
    lines += [[str(_plain(row, n)) for n in names] + _came(row) for row in ranked]
    widths = [max(len(line[i]) for line in lines if i < len(line)) for i in range(len(head))]
    text = []
    for line, row in zip(lines, [None, *ranked], strict=True):
        cells = [f"{cell:<{width}}" for cell, width in zip(line, widths, strict=False)]
        if row is not None and row["status"] == "failed":
            cells = [*cells[: len(names)], row["error"]]
        joined = "  ".join(cells).rstrip()
        text.append(joined if len(joined) <= _SHOWN else joined[: _SHOWN - 3] + "...")
    notes = dict.fromkeys(note for row in rows for note in row.get("notes", ()))
    text += [wrapped(f"note: {note}") for note in notes]
    return "\n".join(text)


def _plain(row: Row, name: str) -> Any:
    return "-" if row[name] is None else row[name]


def _came(row: Row) -> list[str]:
    """Return the result columns."""
    if row["status"] == "failed":
        return []
    if row["predict"]:
        return [f"{row['time_ms']:.4g} ms", row["limiter"], human_bytes(row["dram_bytes"])]
    right = {None: "-", True: "right", False: "WRONG"}[row["right"]]
    return [
        _hazards(row), right,
        human_count(row["global_sectors"]), human_count(row["bank_conflicts"]),
        f"{row['simulation_seconds']:.3g}",
    ]  # fmt: skip


def _hazards(row: Row) -> str:
    """Return the number of hazards; without any, the disabled checks."""
    if not row["checked"]:
        return "not checked"
    if found := row["errors"] + row["warnings"]:
        return f"{found}: {', '.join(row['hazards'])}"
    return "none" if set(row["checked"]) == set(CHECKS) else f"none of {', '.join(row['checked'])}"


_WIDTH, _HEIGHT, _MARGIN_LEFT, _TOP, _BOTTOM, _KEY = 720, 400, 70, 30, 50, 220
_COLOURS = ("#1f5fbf", "#b3431e", "#0f766e", "#7c3aed", "#9a6700", "#5b6576")


def figure(rows: Sequence[Row]) -> str:
    """Return an SVG: predicted milliseconds or global sectors over sizes, a line for each kernel.

    Raises:
        ValueError: No row has both.
    """
    predicted = any("time_ms" in row for row in rows)
    name = "time_ms" if predicted else "global_sectors"
    lines: dict[str, dict[int, float]] = {}
    for row in rows:
        if row["status"] == "ok" and row.get(name) and row["size"]:
            parts = [
                row["kernel"],
                row["tile"] and f":{row['tile']}",
                row["gpu"] and f" {row['gpu']}",
            ]
            first = int(str(row["size"]).split("x")[0])
            series = lines.setdefault("".join(str(part) for part in parts if part), {})
            series[first] = min(row[name], series.get(first, math.inf))
    if not lines:
        raise ValueError("no cell has a size and a figure to plot")
    xs = sorted({x for line in lines.values() for x in line})
    ys = [y for line in lines.values() for y in line.values()]
    low, high = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)) + 1e-9)
    wide, tall = _WIDTH - _MARGIN_LEFT - _KEY, _HEIGHT - _TOP - _BOTTOM
    span = math.log(xs[-1] / xs[0]) or 1.0

    def at(x: float, y: float) -> tuple[float, float]:
        down = (math.log10(y) - low) / max(high - low, 1)
        return _MARGIN_LEFT + wide * math.log(x / xs[0]) / span, _TOP + tall * (1 - down)

    said = "predicted time, ms" if predicted else "32-byte sectors of global memory"
    drawn = [f'<text x="{_MARGIN_LEFT}" y="18">{said}</text>']
    for power in range(low, high + 1):
        _, y = at(xs[0], 10.0**power)
        drawn.append(f'<path d="M{_MARGIN_LEFT} {y:.1f}h{wide}" stroke="#d5dae3"/>')
        place = f'x="{_MARGIN_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end"'
        drawn.append(f"<text {place}>1e{power}</text>")
    for x in xs:
        across, _ = at(x, 10.0**low)
        drawn.append(f'<text x="{across:.1f}" y="{_HEIGHT - 28}" text-anchor="middle">{x}</text>')
    drawn.append(f'<text x="{_MARGIN_LEFT}" y="{_HEIGHT - 8}">size</text>')
    for i, (label, line) in enumerate(lines.items()):
        colour = _COLOURS[i % len(_COLOURS)]
        places = [at(x, y) for x, y in sorted(line.items())]
        way = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        drawn.append(f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="2"/>')
        drawn += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        drawn.append(f'<text x="{_WIDTH - _KEY + 14}" y="{_TOP + 18 * i + 10}" fill="{colour}">'
                     f"{escape(label)}</text>")  # fmt: skip
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'font-family="sans-serif" font-size="12">\n<rect width="{_WIDTH}" height="{_HEIGHT}" '
        f'fill="#ffffff"/>\n' + "\n".join(drawn) + "\n</svg>\n"
    )
