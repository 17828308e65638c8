"""``predict``: how long a launch would take on a GPU that need not be there, and what limits it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernels import Kernel
from kernels.errors import LaunchError

from ..caches.traffic import Observed, observe
from ..events import Stall
from ..execute.prepare import prepare
from ..gpus.table import Gpu, find
from ..isa.memory.stack import STACK_BYTES
from ..isa.validity import place
from ..memory.storage.heap import HEAP_BYTES
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
    """What ``predict`` says of a launch.

    Attributes:
        kernel: As the user wrote it; ``gpu``: which.
        time_ms: Milliseconds, from event to event.
        low_ms, high_ms: Between which it is expected.
        limiter: What takes longest: ``launch``, ``latency``, ``issue``, ``fp32``, ``fp64``,
            ``int``, ``sfu``, ``tensor``, ``l1``, ``shared``, ``l2``, ``dram``, ``barriers`` or
            ``atomics``.
        bounds: Milliseconds that each would take by itself; ``launch`` has
            what the blocks take to begin in it, if they take longer to begin than to run.
        dram_read_bytes, dram_write_bytes: Between L2 and DRAM.
        l1_hit_rate, l2_hit_rate: Of the sectors that loads ask for; ``None`` without any.
        bands: Of the last four attributes that are not ``None``, least and most that is expected:
            nine in ten measured launches are within (``error_bounds.py``), as for the time.
        registers: Of a thread; ``None`` if nothing here can tell.
        warps_active: Share of a multiprocessor's warps that are there.
        blocks_run, blocks: Of the grid: how many were run for this, and all.
        notes: What to know, a sentence each.
        advice: What would help most, three at most, the most helpful first.
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
) -> Prediction:
    """Say how long a launch takes on a GPU, by running some of its blocks here.

    Args:
        kernel: What would run.
        grid: Blocks, one to three numbers, x first.
        block: Threads of a block, likewise.
        args: As ``launch`` takes them; they stay as they are.
        gpu: Its name (``a100``, ``h200``, ...), or a row of the table.
        shared_bytes: Dynamic shared memory of a block.
        registers: Of a thread, where the machine code made here is not what would run.
        caches: By default times are of a launch that finds L2 as the same launch left it, and DRAM
            bytes and hit rates of one that finds caches empty (as Nsight Compute measures);
            ``warm`` or ``cold`` chooses for all.
        symbols: What variables hold, as in ``launch``.
        cooperative: Whether blocks may wait for each other.
        stack_bytes: Of each thread, for functions that call themselves.
        cluster: Blocks of a cluster.
        heap_bytes: What the kernel's ``malloc`` has to give.
        constants: Of the GPU, where they were measured anew.

    Raises:
        ValueError: An unknown GPU, or state of caches.
        LaunchError: A block does not fit on a multiprocessor, or threads never end; otherwise as
            ``launch``.
    """
    if caches not in CACHES:
        raise ValueError(f"caches are warm or cold, not {caches!r}")
    chip = find(gpu) if isinstance(gpu, str) else gpu
    known = constants or rates(chip)
    prepared = prepare(
        kernel, grid, block, args, shared_bytes, "lockstep", 50_000_000, False, None, symbols,
        cooperative, stack_bytes, cluster, heap_bytes,
    )  # fmt: skip
    observed = observe(prepared, chip, registers)
    if observed.sample.path.stall:
        raise LaunchError(_endless(kernel.name, observed.sample.path.stall))
    return prediction_of(case(prepared, observed, known, caches), caches)


def prediction_of(it: PredictionCase, caches: str, advised: bool = True) -> Prediction:
    """What is predicted of a launch; ``caches`` as in ``predict``.

    ``advised``: with what would help, which takes some time.
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
    milliseconds = took.total * 1e3
    return Prediction(
        launch.kernel.name, chip, milliseconds, *around(milliseconds, share),
        _limiter(took), {name: value * 1e3 for name, value in took.bounds.items()},
        traffic.read_bytes, traffic.write_bytes, l1, l2, _bands(observed, traffic, l1, l2),
        occupancy.registers, there, len(sample.blocks), observed.blocks,
        launch.kernel.notes + notes, advise(it) if advised else (),
    )  # fmt: skip


def _endless(name: str, stall: Stall) -> str:
    """Why a launch has no time: on a GPU it would not end either."""
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
    """What takes longest by itself; of L1, whether most of it is shared memory."""
    bounds = took.bounds
    first = max(bounds, key=lambda name: bounds[name])
    if first == "l1" and bounds.get("shared", 0.0) > bounds["l1"] / 2:
        return "shared"
    return first


def _trust(observed: Observed, known: Rates) -> tuple[float, tuple[str, ...]]:
    """Share by which the time may be off, and why."""
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
    if not observed.sample.whole:
        notes.append(f"{len(observed.sample.blocks):,} of {observed.blocks:,} blocks were run")
    return band, tuple(notes)
