"""The roofline as a figure: SVG text, readable on light and dark ground, nothing to install."""

import math
from collections.abc import Mapping
from html import escape

from ..gpus.table import Gpu
from .roofline import Roofline

_WIDTH, _HEIGHT = 720, 420
_MARGIN_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 24, 40, 52
_STYLE = """
.rl{--ink:#1c2330;--faint:#d5dae3;--soft:#5b6576;--roof:#1f5fbf;--c0:#b3431e;--c1:#0f766e;
--c2:#7c3aed;--c3:#9a6700;--ground:#ffffff;font:13px system-ui,sans-serif}
@media (prefers-color-scheme:dark){.rl{--ink:#e6e9ef;--faint:#343b49;--soft:#a0a9b8;
--roof:#7ab0ff;--c0:#ff9166;--c1:#4fd1c0;--c2:#c3a6ff;--c3:#f0c04d;--ground:#14171d}}
.rl text{fill:var(--ink)}.rl .soft{fill:var(--soft);font-size:12px}
.rl .grid{stroke:var(--faint)}.rl .roof{stroke:var(--roof);stroke-width:2.5;fill:none}
.rl .ground{fill:var(--ground)}
""" + "".join(
    f".rl .k{i}{{stroke:var(--c{i});fill:var(--c{i})}}.rl text.k{i}{{stroke:none}}"
    for i in range(4)
)


def roofline_svg(kernels: Mapping[str, Roofline], measured: Mapping[str, float] = {}) -> str:
    """Return the figure of one or several kernels under the roofs of one GPU.

    Each kernel is a bar between its two intensities, at the height that it can attain: left without
    caches, right with each array moved once; a ring is what was measured. ``kernels`` are by the
    name to print; ``measured``: FLOP/s that a GPU reached, for some of them.

    Raises:
        ValueError: No kernel, several GPUs, or no kernel with FLOPs and bytes.
    """
    shown = {name: r for name, r in kernels.items() if all(r.intensities) and r.flops}
    if not shown:
        raise ValueError("no kernel here has both FLOPs and bytes of global memory to plot")
    gpu = next(iter(shown.values())).gpu
    if any(r.gpu != gpu for r in shown.values()):
        raise ValueError("a figure has the roofs of one GPU")
    axes = _Axes(gpu, shown, measured)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="rl" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'role="img" aria-label="{escape(_summary(gpu, shown), quote=True)}">',
        f"<style>{_STYLE}</style>",
        f'<rect class="ground" width="{_WIDTH}" height="{_HEIGHT}"/>',
        f'<text x="{_MARGIN_LEFT}" y="22">Roofline of NVIDIA {escape(gpu.name)}</text>',
        *axes.grid(),
        *axes.roofs(),
    ]
    for number, (name, place) in enumerate(shown.items()):
        parts += axes.kernel(number, name, place, measured.get(name))
    return "\n".join([*parts, "</svg>"]) + "\n"


class _Axes:
    """Logarithmic axes: FLOP per byte across, FLOP/s up."""

    def __init__(self, gpu: Gpu, shown: Mapping[str, Roofline], measured: Mapping[str, float]):
        self.gpu = gpu
        across = [x for place in shown.values() for x in place.intensities if x]
        up = [gpu.fp32, *(value for name, value in measured.items() if name in shown)]
        for place in shown.values():
            up += [y for b in (place.best, place.worst) if (y := place.attainable(b))]
        self.x0 = math.floor(math.log10(min(*across, gpu.balance / 10)))
        self.x1 = math.ceil(math.log10(max(*across, gpu.balance * 10)))
        self.y0 = math.floor(math.log10(min(up) / 2))
        self.y1 = math.ceil(math.log10(max(up) * 1.2))

    def x(self, intensity: float) -> float:
        share = (math.log10(intensity) - self.x0) / (self.x1 - self.x0)
        return round(_MARGIN_LEFT + share * (_WIDTH - _MARGIN_LEFT - _RIGHT), 1)

    def y(self, flops: float) -> float:
        share = (math.log10(flops) - self.y0) / (self.y1 - self.y0)
        return round(_HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM), 1)

    def grid(self) -> list[str]:
        bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
        lines = []
        for power in range(self.x0, self.x1 + 1):
            x = self.x(10.0**power)
            lines.append(f'<line class="grid" x1="{x}" y1="{_TOP}" x2="{x}" y2="{bottom}"/>')
            lines.append(
                f'<text class="soft" text-anchor="middle" x="{x}" y="{bottom + 18}">'
                f"{10.0**power:g}</text>"
            )
        for power in range(self.y0, self.y1 + 1):
            y = self.y(10.0**power)
            lines.append(f'<line class="grid" x1="{_MARGIN_LEFT}" y1="{y}" x2="{right}" y2="{y}"/>')
            lines.append(
                f'<text class="soft" text-anchor="end" x="{_MARGIN_LEFT - 6}" y="{y + 4}">'
                f"{_rate(10.0**power)}</text>"
            )
        middle = (_MARGIN_LEFT + right) / 2
        lines.append(
            f'<text class="soft" text-anchor="middle" x="{middle}" y="{_HEIGHT - 12}">'
            "FLOP per byte of memory (left end: no caches; right end: each array once)</text>"
        )
        lines.append(f'<text class="soft" text-anchor="end" x="{right}" y="22">FLOP/s</text>')
        return lines

    def roofs(self) -> list[str]:
        gpu = self.gpu
        low = max(10.0**self.x0, 10.0**self.y0 / gpu.bandwidth)
        ridge, top = self.x(gpu.balance), self.y(gpu.fp32)
        start = f"{self.x(low)},{self.y(low * gpu.bandwidth)}"
        right = _WIDTH - _RIGHT
        return [
            f'<polyline class="roof" points="{start} {ridge},{top} {right},{top}"/>',
            f'<text class="soft" text-anchor="end" x="{right}" y="{top - 8}">'
            f"{gpu.fp32 / 1e12:g} TFLOP/s of FP32</text>",
            f'<text class="soft" text-anchor="end" x="{ridge - 14}" y="{top + 4}">'
            f"{gpu.bandwidth / 1e9:,.0f} GB/s</text>",
        ]

    def kernel(self, number: int, name: str, place: Roofline, measured: float | None) -> list[str]:
        first, right = (x for x in place.intensities if x)
        low, high = (place.attainable(bound) or 0.0 for bound in (place.worst, place.best))
        style = f'class="k{number % 4}"'
        x1, y1, x2, y2 = self.x(first), self.y(low), self.x(right), self.y(high)
        knee = high / self.gpu.bandwidth  # from here on not memory, but something else bounds it
        bend = f" {self.x(knee)},{y2}" if first < knee < right else ""
        above = min(y1, y2) - 9
        anchor = "end" if x2 > _WIDTH - 160 else "start"
        parts = [
            f'<polyline {style} style="fill:none" stroke-width="4" stroke-opacity="0.75" '
            f'points="{x1},{y1}{bend} {x2},{y2}"/>',
            f'<circle {style} r="4.5" cx="{x1}" cy="{y1}"/>',
            f'<circle {style} r="4.5" cx="{x2}" cy="{y2}"/>',
            f'<text {style} text-anchor="{anchor}" x="{x2}" y="{above + 26 * (number % 2 == 1)}">'
            f"{escape(name)}</text>",
        ]
        if measured:
            parts.append(
                f'<circle {style} style="fill:none" stroke-width="2.5" r="7" cx="{x2}" '
                f'cy="{self.y(measured)}"><title>{escape(name)}: measured {_rate(measured)}FLOP/s'
                "</title></circle>"
            )
        return parts


def _summary(gpu: Gpu, shown: Mapping[str, Roofline]) -> str:
    texts = []
    for name, place in shown.items():
        rate = place.attainable(place.best)
        bound = place.best.name if place.best else "nothing"
        texts.append(f"{name} at most {_rate(rate or 0.0)}FLOP/s, bound by {bound}")
    return f"Roofline of {gpu.name}: " + "; ".join(texts)


def _rate(value: float) -> str:
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if value >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:.3g} "
