"""Report of ``tilescope run``."""

import textwrap

from kernels.library import Agreement
from kernels.source_access import plain
from simulator import CHECKS, Counters, Run
from simulator.hazards.folding import fold_causes
from simulator.observe.counters.totals import ARITHMETIC, TENSOR

from ..check.outcome import Outcome
from ..cli.target import settled
from .layout import columns, hazard_text, human_bytes, human_count, percent, shape, table, wrapped
from .lines import busiest, used

_COLUMNS = (16, 16, 16, 16)
_PRINTED = 20
"""Lines of what a kernel printed that are shown."""


def report(outcome: Outcome, by: str = "cost") -> str:
    """Return everything except the verdict; ``by``: sort key of the busiest lines."""
    counters = outcome.run.counters
    parts = [
        heading(outcome),
        _memory(counters),
        _sectors(counters),
        _banks(counters),
        _arithmetic(outcome.run),
        busiest(outcome.run, by),
        _printed(outcome.run.output),
        "\n".join([*results(outcome), *hazards(outcome), wrapped(_speed(outcome))]),
    ]
    return "\n\n".join(part for part in parts if part)


def heading(outcome: Outcome) -> str:
    """Return kernel and launch shape."""
    run, target = outcome.run, outcome.target
    lines = [target.name]
    if target.entry is not None:
        lines[0] += f": {target.entry.summary}"
        lines.append(f"{run.kernel}, {settled(target)}")
    blocks = run.grid[0] * run.grid[1] * run.grid[2]
    threads = run.block[0] * run.block[1] * run.block[2]
    total = f"{blocks * threads:,} thread{'s' if blocks * threads > 1 else ''}"
    clusters = f" in clusters of {shape(run.cluster)}" if max(run.cluster) > 1 else ""
    launch = f"grid {shape(run.grid)}{clusters}, block {shape(run.block)}: {total}"
    if run.shared_bytes:
        launch += f"; {human_bytes(run.shared_bytes)} of shared memory a block"
    lines.append(launch)
    if run.build == "source":
        lines.append("source build (NVRTC -G, unoptimised): a GPU usually runs the device build")
    if run.schedule != "lockstep":
        lines.append(f"schedule {run.schedule}")
    return "\n".join(
        part for line in lines for part in textwrap.wrap(line, columns(), subsequent_indent="  ")
    )


def _memory(counters: Counters) -> str:
    rows = [
        (name, f"{t.requests:,}", f"{t.accesses:,}", human_bytes(t.bytes))
        for name, t in used(counters, ("",))
    ]
    if not rows:
        return "no access to memory"
    return "\n".join(table(("memory", "warp requests", "accesses", "bytes"), rows, _COLUMNS))


def _sectors(counters: Counters) -> str:
    rows = [
        (name, f"{t.sectors:,}", f"{t.sectors_per_request:.2f}", percent(t.coalescing))
        for name, t in used(counters, ("global", "local"))
    ]
    head = ("32-byte sectors", "sectors", "a request", "coalescing")
    return "\n".join(table(head, rows, _COLUMNS)) if rows else ""


def _banks(counters: Counters) -> str:
    rows = [
        (name, f"{t.wavefronts:,}", f"{t.wavefronts / t.requests:.2f}", f"{t.bank_conflicts:,}")
        for name, t in used(counters, ("shared",))
    ]
    head = ("shared banks", "wavefronts", "a request", "conflicts")
    return "\n".join(table(head, rows, _COLUMNS)) if rows else ""


def _arithmetic(run: Run) -> str:
    counters = run.counters
    rows: list[tuple[str, str, str]] = []
    if counters.flops:
        rows.append(("FLOPs", f"{counters.flops:,}", "an fma is two"))
    for kind in ARITHMETIC:
        if count := getattr(counters, kind):
            rows.append((f"  {kind.replace('_', ' ')}", f"{count:,}", ""))
    for kind in TENSOR:
        if count := getattr(counters, kind):
            rows.append(
                (
                    f"  {kind.replace('_', ' ')}",
                    f"{count:,}",
                    f"operations, by the rules of {run.arch}",
                )
            )
    if counters.flops and counters.intensity is not None:
        rows.append(("intensity", f"{counters.intensity:.2f}", "FLOP per global byte asked for"))
    if counters.flops and counters.sector_intensity is not None:
        rows.append(("", f"{counters.sector_intensity:.2f}", "FLOP per byte of global sectors"))
    if counters.lane_utilisation is not None:
        rows.append(("lanes on", percent(counters.lane_utilisation), "of a warp's 32, on average"))
    if counters.divergent_branches:
        count = f"{counters.divergent_branches:,}"
        rows.append(("divergence", count, "branches that split a warp"))
    lines = []
    for name, value, note in rows:
        line = f"{name:<16}{value:>16}  {note}".rstrip()
        fits = len(line) <= columns()
        lines += [line] if fits else [f"{name:<16}{value:>16}", f"  {note}"]
    return "\n".join(lines)


def _printed(output: str) -> str:
    """Return the first lines of the kernel's output."""
    lines = plain(output).splitlines()
    shown = [f"  {line}" for line in lines[:_PRINTED]]
    if rest := len(lines[_PRINTED:]):
        many = f"{rest:,} more line{'s' * (rest != 1)}"
        shown.append(f"  ... and {many}: --json has them all")
    return "\n".join(["printed", *shown]) if lines else ""


def results(outcome: Outcome) -> list[str]:
    """Return whether the outputs are right."""
    notes = [f"note: {note}" for note in outcome.run.notes]
    if not outcome.agreements:
        return ["result: not checked, there is no reference", *notes]
    lines = [wrapped(result(agreement)) for agreement in outcome.agreements]
    entry = outcome.target.entry
    if entry is not None and entry.racy and all(a.within for a in outcome.agreements):
        lines.append("        by luck: this kernel has a race, and another schedule may differ")
    if outcome.run.approximate:
        lines.append("        (an instruction ran whose last bits PTX leaves open)")
    return [*lines, *notes]


def verdict(outcome: Outcome) -> str:
    """Return in one line whether anything is wrong, and what was not checked."""
    run, bad = outcome.run, [a.name for a in outcome.agreements if not a.within]
    hazards = fold_causes(run.hazards)
    found = [sum(h.severity == s for h in hazards) for s in ("error", "warning", "note")]
    many = [
        f"{n} {noun}{'s' if n > 1 else ''}"
        for n, noun in zip(found, ("error", "warning", "note"), strict=True) if n
    ]  # fmt: skip
    if many:
        said = [", ".join(many)]
    else:
        said = [clean(run, outcome.set_aside)]
    if bad:
        said.insert(0, f"{', '.join(bad)} wrong")
    elif outcome.agreements:
        said.append("right result")
    else:
        said.append("result not checked (--expect, --reference)")
    if found[0] + found[1]:
        said.append("tilescope check looks for fixes")
    return wrapped(f"verdict: {'; '.join(said)}")


def clean(run: Run, set_aside: int = 0) -> str:
    """Return the sentence for a run without hazards except ignored ones."""
    said = f"no hazards but {set_aside:,} ignored" if set_aside else "no hazards"
    if run.checked == CHECKS:
        return said
    which = ", ".join(run.checked)
    return f"{said} among {which}, the rest not checked" if which else "hazards not checked"


def wrong(outcome: Outcome) -> list[str]:
    """Return only what makes the run fail, or may do so."""
    bad = [result(agreement) for agreement in outcome.agreements if not agreement.within]
    found = fold_causes(outcome.run.hazards)
    return bad + [hazard_text(h) for h in found if h.severity != "note"]


def result(agreement: Agreement) -> str:
    """Return how an output compares with its reference."""
    name, error = agreement.name, f"largest error {agreement.max_error:.2g}"
    if agreement.within:
        share = percent(agreement.used)
        return f"result: {name} is within its error bound; {error}, {share} of the bound"
    count = f"{agreement.wrong:,} of {agreement.elements:,} elements"
    return f"result: {name} is WRONG in {count}; {error}"


def hazards(outcome: Outcome) -> list[str]:
    """Return the hazards, and what was checked."""
    run, known = outcome.run, outcome.set_aside
    if run.hazards:
        omitted = [f"ignored by comments: {known:,} of the hazards found"] if known else []
        return [*(hazard_text(hazard) for hazard in fold_causes(run.hazards)), *omitted]
    if not run.checked:
        return ["hazards: not checked"]
    missing = [check for check in CHECKS if check not in run.checked]
    more = f"; not checked: {', '.join(missing)}" if missing else ""
    found = f"none but {known:,} ignored by comments" if known else "none found"
    text = f"hazards: {found} (checked: {', '.join(run.checked)}{more})"
    return textwrap.wrap(text, columns(), subsequent_indent="  ")


def _speed(outcome: Outcome) -> str:
    run = outcome.run
    rate = run.counters.thread_instructions / run.seconds if run.seconds else 0.0
    return f"time: {run.seconds:.2f} s, {human_count(rate)} thread instructions a second"
