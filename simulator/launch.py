"""``launch``: run a kernel's PTX on NumPy.

A launch goes through the house once: it is made ready (``execute/prepare.py``), its blocks are
run, batch by batch, while observers watch (``rerun/driver.py``, ``execute/batches.py``), and what
these saw becomes a ``Run`` (``run.py``).
"""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from kernels import Kernel
from kernels.arguments.argument_copies import copies
from kernels.errors import LaunchError

from .caches.traffic import count, observe
from .execute.batches import Progress
from .execute.prepare import prepare
from .gpus.table import Gpu, find
from .hazards.resources import may_lack, too_many
from .isa.memory.stack import STACK_BYTES
from .memory.storage.allocate import copy_back, module_variables_after
from .memory.storage.heap import HEAP_BYTES
from .memory.storage.module_state import kept
from .memory.storage.page_cache import keep_pages
from .native.selection import NUMPY, check_engine
from .observe.checks.array_footprint import ArrayFootprint
from .observe.observers import chosen
from .observe.trace.trace import Trace
from .rerun.driver import run_to_verdict
from .run import Run, report

LIMITS = "h200"
"""The GPU that has to have what a block takes, where none is named."""


def launch(
    kernel: Kernel,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any],
    shared_bytes: int = 0,
    schedule: str | int = "lockstep",
    checks: str | Collection[str] = "all",
    progress: Progress | None = None,
    step_limit: int = 50_000_000,
    trace: bool | Trace = False,
    arch: str | int | None = None,
    symbols: Mapping[str, Any] | None = None,
    cooperative: bool = False,
    stack_bytes: int = STACK_BYTES,
    cluster: int | Sequence[int] | None = None,
    heap_bytes: int = HEAP_BYTES,
    gpu: str | Gpu | None = None,
    counters: str = "all",
    workers: int | str = 1,
    limits: str | Gpu | None = None,
    engine: str = "auto",
) -> Run:
    """Run a kernel and count what it does.

    Args:
        kernel: What to run; the PTX text it holds is executed.
        grid: Blocks, one to three numbers, x first.
        block: Threads of a block, likewise.
        args: NumPy arrays are pointers, copied in and written back in place (a
            non-writeable one is read-only memory to the kernel), views of one array that
            overlap are one allocation, a ``kernels.Pointer`` is an address inside one, a list
            of these a table of addresses (``float**``); Python numbers and NumPy scalars are
            passed by value; a struct is a tuple that fits its fields (which may be arrays), a
            NumPy structured scalar or a ``ctypes.Structure``.
        shared_bytes: Dynamic shared memory of a block.
        schedule: ``lockstep``, ``warps``, ``reverse``, or a seed for a random one.
        checks: ``all``, ``none``, or names out of ``simulator.CHECKS``.
        progress: Called now and then with blocks done and blocks in all.
        step_limit: Basic blocks that a batch of blocks may run before it is given up as
            endless (a loop that changes nothing is found long before).
        trace: Whether to record each step, for ``run.trace`` and ``run.show()``; a ``Trace``
            says what to record.
        arch: Whose arithmetic tensor cores have: ``90``, ``"sm_90a"`` or ``"compute_90a"``; by
            default the PTX's target.
        symbols: What fills ``__constant__`` and ``__device__`` variables, by their names in C++
            or in the PTX: arrays, which get what the launch leaves there; or, as parameters by
            value take it, numbers, tuples for structures, textures and surfaces, lists of these.
            Others are as the module has them; in ``tilescope.session()`` as launches left them.
        cooperative: Whether blocks may wait for each other at grid-wide barriers.
        stack_bytes: Of each thread, for functions that call themselves and for ``alloca``
            (``cudaLimitStackSize``).
        cluster: Blocks of a cluster, as the grid's; by default what the kernel is compiled for.
        heap_bytes: What the kernel's ``malloc`` has to give (``cudaLimitMallocHeapSize``).
        gpu: Whose caches to follow the traffic through (``h200``); then ``run.counters.l1``,
            ``.l2`` and ``.dram`` are what they would have to do if they were empty.
        counters: ``all``, or ``none``: nothing is counted, ``run.counted`` is false.
        workers: How many processes share the blocks, this one among them; ``all``: as many as
            there are cores, if more than a second of work is left by then. Results and reports are
            those of one. Where blocks touch what others write they are run again in one process;
            ``run.notes`` says why.
        limits: The GPU that has to have the registers and the shared memory of a block, if anything
            is checked; by default ``gpu``, or else an H200; ``none``: no GPU has.
        engine: ``auto``, ``numpy`` or ``native``: machine code for launches of few threads, which
            takes the extra ``tilescope[fast]``. Results, counters and hazards are the same.
            ``auto`` begins in NumPy and changes over where that pays; ``run.engine`` says which
            engine ran the launch, ``run.engine_note`` why the native one did not.

    Raises:
        PtxError: The PTX cannot be parsed, or has an instruction without a row.
        LaunchError: A shape, shared memory size, schedule or check that cannot be.
        TypeError: A wrong count or kind of arguments; names the parameter.
        ValueError: An argument that does not fit, or an unknown architecture; names it.
    """
    began = time.perf_counter()
    keep_pages()
    asked = chosen(checks)
    check_engine(engine)
    if counters not in ("all", "none") or (gpu is not None and counters == "none"):
        raise LaunchError(f"counters is 'all' or 'none' (with gpu, 'all'), not {counters!r}")
    if workers != "all" and (isinstance(workers, (str, bool)) or workers < 1):
        raise LaunchError(f"workers is a number of processes from 1 on, or 'all', not {workers!r}")
    recorder = Trace() if trace is True else trace or None
    if recorder:
        recorder.given = {
            "args": copies(args), "shared_bytes": shared_bytes, "cooperative": cooperative,
            "symbols": copies([symbols])[0] if symbols else None, "stack_bytes": stack_bytes,
            "cluster": cluster, "heap_bytes": heap_bytes,
        }  # fmt: skip
    prepared = prepare(
        kernel, grid, block, args, shared_bytes, schedule, step_limit, recorder is not None, arch,
        symbols, cooperative, stack_bytes, cluster, heap_bytes,
    )  # fmt: skip
    followed = bool(_listeners)
    of_module, keeps = kept()
    held = of_module(kernel) if of_module else {}
    prepared = dataclasses.replace(
        prepared, counted=counters == "all", followed=followed, held=held
    )
    prepared.arguments.warn()
    chip = find(gpu) if isinstance(gpu, str) else gpu
    cached = observe(prepared, chip) if chip else None  # before the launch changes its arrays
    seen = run_to_verdict(
        prepared, asked, recorder, progress, workers=workers,
        engine=NUMPY if chip and engine == "auto" else engine,
    )  # fmt: skip
    layout = prepared.program.layout
    copy_back(prepared.arguments, layout, seen.allocations, "uninitialised" in asked)
    if keeps:
        functions = prepared.program.module.functions
        held |= module_variables_after(
            layout, functions, prepared.arguments, held, seen.allocations
        )
    run = report(prepared, seen.observers, asked, began)
    run.workers, run.engine, run.engine_note = seen.workers, seen.engine, seen.engine_note
    if seen.alone:
        run.notes += (f"one worker: {seen.alone}",)
    if cached:
        count(run.counters, cached)
    given = limits or chip or LIMITS
    held_to = find(given) if isinstance(given, str) and given != "none" else given
    if asked and isinstance(held_to, Gpu) and may_lack(prepared.block, run.shared_bytes, held_to):
        hazards, notes = too_many(prepared, held_to, seen.observers.sources)
        run.hazards[:0], run.notes = hazards, (*run.notes, *notes)
    if followed:
        arguments = prepared.arguments
        touched = seen.observers.touches.touched(arguments.arrays, arguments.labels)
        for callback in _listeners:
            callback(kernel, run, touched)
    return run


_Tell = Callable[[Kernel, Run, Sequence[ArrayFootprint]], None]
_listeners: list[_Tell] = []


@contextlib.contextmanager
def listen(tell: _Tell) -> Iterator[None]:
    """Be told of each launch that ends inside a ``with``, and of what it touched."""
    _listeners.append(tell)
    try:
        yield
    finally:
        _listeners.remove(tell)
