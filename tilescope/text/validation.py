"""Report of ``tilescope validate``: NumPy, simulator and device."""

from typing import Any

from device import Comparison, Validation
from kernels.library import Agreement, Launch

from ..cli.target import Target, settled
from .layout import hazard_text, percent, shape, table, wrapped

_WIDTHS = (12, 23, 13, 30)
_HEAD = ("", "max error vs float64", "of its bound", "equal to simulator")


def validation(target: Target, found: Validation, release: str, product: Any | None) -> str:
    """Return the report.

    ``product``: NumPy's own float32 result, if there is one.
    """
    run, out = found.run, found.output
    lines = [target.name]
    size = f", {settled(target)}" if target.entry else ""
    lines.append(f"{run.kernel}{size}, grid {shape(run.grid)}, block {shape(run.block)}")
    if out is None:
        lines.append(f"PTX {run.sha256[:12]}… (simulator only)")
        lines += ["", *(hazard_text(hazard) for hazard in found.run.hazards), ""]
        lines.append(wrapped(f"NOT validated: {found.reason}"))
        return "\n".join(lines)
    lines.append(f"PTX {run.sha256[:12]}… (same bytes on both)   {out.device}, driver {release}")
    for comparison in found.comparisons:
        if _of_interest(target, found, comparison):
            lines += ["", *_table(target, found, comparison, product)]
    lines.append("")
    lines += [wrapped(f"note: bits are not promised for {why}") for why in found.unpromised]
    lines.append(wrapped(_verdict(found)))
    return "\n".join(lines)


def _table(
    target: Target, found: Validation, comparison: Comparison, product: Any | None
) -> list[str]:
    rows = []
    outputs = target.launch.outputs if target.launch else {}
    if product is not None and target.expected and list(outputs.values()) == [comparison.place]:
        (name,) = outputs
        launch = Launch((1,), (1,), [product], {name: 0}, lambda args: {})
        agreement = launch.compare(target.expected)[0]
        ours = found.simulated[comparison.place]
        equal = int((product.view("u4") == ours.view("u4")).sum())
        rows.append(_row("numpy", agreement, comparison.bounded, _share(equal, ours.size)))
    rows.append(_row("simulator", comparison.simulator, comparison.bounded, "-"))
    how = "bit for bit " if comparison.same else ""
    share = _share(comparison.equal, comparison.elements)
    rows.append(_row("device", comparison.device, comparison.bounded, how + share))
    lines = table((comparison.name, *_HEAD[1:]), rows, _WIDTHS)
    if comparison.where is not None and comparison.values is not None:
        place = ", ".join(str(i) for i in comparison.where)
        far = f"{comparison.max_ulp:,} ulp" if comparison.max_ulp < 2**62 else "beyond counting"
        ulp = f"{far} apart, " if comparison.max_ulp else ""
        first, second = comparison.values
        lines.append(
            wrapped(f"farthest: {ulp}{comparison.name}[{place}]: simulator {first!s}, "
                    f"device {second!s}")
        )  # fmt: skip
    return lines


def _of_interest(target: Target, found: Validation, comparison: Comparison) -> bool:
    """Whether an array has a reference, was changed, or differs between machines."""
    before, after = target.args[comparison.place], found.simulated[comparison.place]
    changed = before.tobytes() != after.tobytes()
    return changed or comparison.simulator is not None or not comparison.same


def _row(name: str, agreement: Agreement | None, bounded: bool, equal: str) -> tuple[str, ...]:
    if agreement is None:
        return name, "not checked", "-", equal
    used = percent(agreement.used) if bounded else "no bound"
    return name, f"{agreement.max_error:.3g}", used if agreement.within else "OUTSIDE", equal


def _share(equal: int, elements: int) -> str:
    return f"({equal:,} of {elements:,})"


def _verdict(found: Validation) -> str:
    if not found.validated:
        return f"NOT validated: {found.reason}"
    if found.bit_for_bit:
        return "validated: simulator and device agree bit for bit"
    return "validated: both within the error bound; bits differ where PTX promises none"
