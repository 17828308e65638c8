"""``predict``: time and limiter of a launch on a GPU that need not be present."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kernels import Kernel
from kernels.errors import LaunchError

from ..caches.traffic import Observed, observe
from ..core.html_table import html_table
from ..events import Stall
from ..execute.prepare import prepare
from ..gpus.table import Gpu, find
from ..isa.memory.stack import STACK_BYTES
from ..isa.validity import place
from ..memory.storage.device import Device
from ..memory.storage.heap import HEAP_BYTES
from ..memory.storage.module_state import current_memory
from ..observe.counters.totals import DramTraffic
from .advice.advice import Advice, advise
from .error_bounds import Band, around, errors, rate_around
from .model import Times
from .model_input import PredictionCase, case
from .rates import Rates, rates

CACHES = ("", "warm", "cold")
_NO_REGISTERS, _NOT_MEASURED = 0.4, 0.4
"""By how much more a time may be off where registers are not known, and on a GPU that was not
measured."""


@dataclass(frozen=True)
class Prediction:
    """Predicted performance of a launch.

    Attributes:
        kernel: The entry as the user wrote it.
        gpu: Name of the GPU.
        time_ms: Time from event to event, milliseconds.
        low_ms, high_ms: Bounds of the time: nine in ten measured launches are inside.
        limiter: The part that needs the longest time: ``launch``, ``latency``, ``issue``, ``fp32``,
            ``fp64``, ``int``, ``sfu``, ``tensor``, ``l1``, ``shared``, ``l2``, ``dram``,
            ``barriers`` or ``atomics``.
        bounds: Milliseconds that each part would need alone. ``launch`` includes the start of the
            blocks if that takes longer than their execution.
        dram_read_bytes, dram_write_bytes: Traffic between L2 and DRAM.
        l1_hit_rate, l2_hit_rate: Hits over sectors of loads; ``None`` without loads.
        bands: Bounds of the last four attributes, as for the time (``error_bounds.py``).
        registers: Registers of a thread; ``None`` if unknown.
        warps_active: Resident warps as a share of the multiprocessor's maximum.
        blocks_run, blocks: Simulated blocks, and blocks of the grid.
        notes: Assumptions and limits, a sentence each.
        advice: The most effective optimisations, at most three, best first.
    """

    kernel: str
    gpu: Gpu
    time_ms: float
    low_ms: float
    high_ms: float
    limiter: str
    bounds: dict[str, float]
    dram_read_bytes: float
    dram_write_bytes: float
    l1_hit_rate: float | None
    l2_hit_rate: float | None
    bands: dict[str, Band]
    registers: int | None
    warps_active: float
    blocks_run: int
    blocks: int
    notes: tuple[str, ...] = ()
    advice: tuple[Advice, ...] = ()

    def _repr_html_(self) -> str:
        """Return a table for Jupyter: the time, and what each part of the GPU would need."""
        factor, unit = (1, "ms") if self.time_ms >= 1 else (1000, "us")

        def spelled(time_ms: float) -> str:
            return f"{time_ms * factor:.3g} {unit}"

        rows = [
            (part, spelled(time), "limits the launch" if part == self.limiter else "")
            for part, time in sorted(self.bounds.items(), key=lambda item: -item[1]) if time
        ]  # fmt: skip
        caption = (
            f"{self.kernel} on {self.gpu.name}: {spelled(self.time_ms)}, "
            f"{spelled(self.low_ms)} to {spelled(self.high_ms)}"
        )
        return html_table(("part", "alone", ""), rows, caption)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; times in milliseconds."""
        advice = [one.to_dict() for one in self.advice]
        return self.__dict__ | {
            "gpu": self.gpu.key, "notes": list(self.notes), "advice": advice,
        }  # fmt: skip


def predict(
    kernel: Kernel,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any],
    gpu: str | Gpu = "h200",
    shared_bytes: int = 0,
    registers: int | None = None,
    caches: str = "",
    symbols: Mapping[str, Any] | None = None,
    cooperative: bool = False,
    stack_bytes: int = STACK_BYTES,
    cluster: int | Sequence[int] | None = None,
    heap_bytes: int = HEAP_BYTES,
    constants: Rates | None = None,
    device: Device | None = None,
) -> Prediction:
    """Predict the time of a launch on a GPU, by simulating some of its blocks.

    Args:
        kernel: The kernel.
        grid: Grid extents in blocks, one to three numbers, x first.
        block: Block extents in threads, one to three numbers, x first.
        args: As for ``launch``; arrays are not modified.
        gpu: Name of the GPU (``a100``, ``h200``, ...), or a row of the table.
        shared_bytes: Dynamic shared memory of a block, in bytes.
        registers: Registers of a thread, if other machine code than that compiled here would run.
        caches: State of the caches at the start: ``warm`` or ``cold``. By default times are those
            of a launch that finds L2 as the same launch left it; DRAM bytes and hit rates are those
            of one that finds empty caches (as Nsight Compute measures).
        symbols: Contents of module variables, as for ``launch``.
        cooperative: Whether blocks may wait for each other.
        stack_bytes: Stack of each thread in bytes, for recursion.
        cluster: Cluster extents in blocks.
        heap_bytes: Bytes available to the kernel's ``malloc``.
        constants: Constants of the GPU, if they were measured anew.
        device: Device whose memory the launch uses, as for ``launch``; it is not modified.

    Raises:
        ValueError: The GPU or the state of caches is unknown.
        LaunchError: A block does not fit on a multiprocessor, threads never end, or ``launch``
            would raise it.
    """
    if caches not in CACHES:
        raise ValueError(f"caches are warm or cold, not {caches!r}")
    chip = find(gpu) if isinstance(gpu, str) else gpu
    known = constants or rates(chip)
    prepared = prepare(
        kernel, grid, block, args, shared_bytes, "lockstep", 50_000_000, False, None, symbols,
        cooperative, stack_bytes, cluster, heap_bytes, device,
    )  # fmt: skip
    of_module = None if device else current_memory()[0]
    if of_module:
        prepared = replace(prepared, module_variables=dict(of_module(kernel)))
    observed = observe(prepared, chip, registers)
    if observed.sample.path.stall:
        raise LaunchError(_endless(kernel.name, observed.sample.path.stall))
    return prediction_of(case(prepared, observed, known, caches), caches)


def prediction_of(it: PredictionCase, caches: str, advised: bool = True) -> Prediction:
    """Return the prediction of a launch; ``caches`` as for ``predict``.

    ``advised``: whether to search for advice, which takes some time.
    """
    launch, observed, known = it.launch, it.observed, it.rates
    sample, chip, occupancy, traffic = (
        observed.sample,
        observed.gpu,
        observed.occupancy,
        observed.dram(caches != "warm"),
    )
    l1, l2 = observed.l1.hit_rate, observed.l2(caches != "warm").hit_rate
    took = it.took
    there = (
        min(occupancy.blocks, -(-observed.blocks // chip.sms))
        * it.shape.warps
        / chip.architecture.warps
    )
    share, notes = _trust(observed, known)
    stores = any(
        one.space == "global" and one.site.access != "load" and one.requests
        for one in it.work.sites
    )
    if stores and not round(traffic.write_bytes):
        notes = (*notes, "nothing is written to DRAM: what the launch stores stays in L2")
    milliseconds = took.total * 1e3
    return Prediction(
        launch.kernel.name, chip, milliseconds, *around(milliseconds, share),
        _limiter(took), {name: value * 1e3 for name, value in took.bounds.items()},
        traffic.read_bytes, traffic.write_bytes, l1, l2, _bands(observed, traffic, l1, l2),
        occupancy.registers, there, len(sample.blocks), observed.blocks,
        launch.kernel.notes + notes, advise(it) if advised else (),
    )  # fmt: skip


def _endless(name: str, stall: Stall) -> str:
    """Return the message for a launch that does not terminate."""
    if stall.why == "limit":
        return f"{name} was given up after {stall.steps:,} steps, while threads still ran"
    loops = [loop.instruction for loop in stall.loops]
    terminators = [divergence.block.block.end for divergence in stall.waiting]
    what = "loop" if loops else "wait at a barrier"
    at = next(place(ins) for ins in (*loops, *terminators) if ins)
    return f"{name} never ends, so there is no time to predict: threads {what} for ever, {at}"


def _bands(
    observed: Observed, traffic: DramTraffic, l1: float | None, l2: float | None
) -> dict[str, Band]:
    off = errors()
    found = {
        "dram_read_bytes": around(
            traffic.read_bytes, off["dram_read_again" if observed.reads_again else "dram_read_once"]
        ),
        "dram_write_bytes": around(traffic.write_bytes, off["dram_written"]),
    }
    for name, rate, points in (
        ("l1_hit_rate", l1, off["l1_hits"]), ("l2_hit_rate", l2, off["l2_hits"]),
    ):  # fmt: skip
        if rate is not None:
            found[name] = rate_around(rate, points)
    return found


def _limiter(took: Times) -> str:
    """Return the part that needs the longest time; L1 is split off for shared memory."""
    bounds = took.bounds
    first = max(bounds, key=lambda name: bounds[name])
    if first == "l1" and bounds.get("shared", 0.0) > bounds["l1"] / 2:
        return "shared"
    return first


def _trust(observed: Observed, known: Rates) -> tuple[float, tuple[str, ...]]:
    """Return the relative error of the time, and the reasons."""
    band, notes = errors()["time"], []
    if observed.occupancy.registers is None:
        band += _NO_REGISTERS
        notes.append("registers unknown: nothing here makes machine code, so as many blocks as fit")
    elif observed.code is None or not observed.code.known:
        band += _NO_REGISTERS / 2
        notes.append("no machine code: instructions are those of the PTX")
    if not known.measured:
        band += _NOT_MEASURED
        notes.append(f"{observed.gpu.name} was never measured: its data sheet, the rest as an H200")
    if bad := observed.sample.path.bad:
        where = place(bad.site.instruction)
        notes.append(
            f"{bad.kind} access, {where}: a GPU ends such a launch; tilescope check it first"
        )
    if not observed.sample.whole:
        notes.append(f"{len(observed.sample.blocks):,} of {observed.blocks:,} blocks were run")
    return band, tuple(notes)
