"""``launch``: run a kernel's PTX on NumPy.

The launch is validated and compiled (``execute/prepare.py``). Its blocks are executed in batches
while observers collect events (``rerun/driver.py``, ``execute/batches.py``). The observers' results
become a ``Run`` (``run.py``).
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
from .execute.device_arguments import device_arguments, frozen, reached
from .execute.prepare import prepare
from .gpus.table import Gpu, find
from .hazards.resources import may_lack, too_many
from .isa.memory.stack import STACK_BYTES
from .memory.memories import UnreachedMemoryError
from .memory.storage.allocate import copy_back, module_variables_after
from .memory.storage.device import Device
from .memory.storage.heap import HEAP_BYTES, HeapContent
from .memory.storage.layout import HEAP
from .memory.storage.module_state import current_memory
from .memory.storage.page_cache import keep_pages
from .native.selection import check_engine, may_be_native
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
    device: Device | None = None,
    engine: str = "auto",
) -> Run:
    """Run a kernel on the CPU, count what it does and check it for hazards.

    Args:
        kernel: The kernel; its PTX text is what is executed.
        grid: Grid extents in blocks, one to three numbers, x first.
        block: Block extents in threads, one to three numbers, x first.
        args: The kernel's arguments. A NumPy array is passed as a pointer: copied in, and written
            back in place (a non-writeable array is read-only memory to the kernel). Overlapping
            views of one array form one allocation. A ``kernels.Pointer`` is an address inside an
            array, and a list of these a table of addresses (``float**``). Python numbers and NumPy
            scalars are passed by value. A structure is a tuple of its fields (arrays allowed), a
            NumPy structured scalar or a ``ctypes.Structure``.
        shared_bytes: Dynamic shared memory of a block, in bytes.
        schedule: ``lockstep``, ``warps``, ``reverse``, or the seed of a random schedule.
        checks: ``all``, ``none``, or names from ``simulator.CHECKS``.
        progress: Called during the run with the number of finished blocks and of all blocks.
        step_limit: Basic blocks that a batch of blocks may execute before the launch is reported as
            endless. Loops that change no state are found much earlier.
        trace: Whether to record each step for ``run.trace`` and ``run.show()``; a ``Trace`` selects
            what to record.
        arch: Architecture whose tensor-core arithmetic is modelled: ``90``, ``"sm_90a"`` or
            ``"compute_90a"``. Default: the target of the PTX.
        symbols: Contents of ``__constant__`` and ``__device__`` variables, by their names in C++ or
            in the PTX. An array is also written back after the launch. Other values are those of
            by-value arguments: numbers, tuples, textures, surfaces, and lists of these. A variable
            that is not named has the module's initial value; in ``tilescope.session()`` it has the
            value that earlier launches stored.
        cooperative: Whether blocks may wait for each other at grid-wide barriers.
        stack_bytes: Stack of each thread in bytes, for recursion and ``alloca``
            (``cudaLimitStackSize``).
        cluster: Cluster extents in blocks, x first. Default: those the kernel was compiled for.
        heap_bytes: Bytes available to the kernel's ``malloc`` (``cudaLimitMallocHeapSize``).
        gpu: GPU whose caches are simulated, such as ``h200``. ``run.counters.l1``, ``.l2`` and
            ``.dram`` then have the traffic of a launch that starts with empty caches.
        counters: ``all``; or ``none`` to count nothing (``run.counted`` is false).
        workers: Number of processes that share the blocks, this one included. ``all`` uses every
            core if more than a second of work remains. Results and reports equal those of one
            process. If blocks access what other blocks write, the launch is repeated in one process
            and ``run.notes`` gives the reason.
        limits: GPU against whose registers and shared memory a block is checked. Default: ``gpu``,
            or an H200; ``none`` disables the check.
        device: Device whose memory and module variables the launch uses. ``args`` are then the
            bytes of each parameter, numbers (addresses among them), or what they are without one;
            arrays that lie in no allocation get addresses (``Device.adopt``).
        engine: ``auto``, ``numpy`` or ``native``: machine code for launches of few threads, which
            takes the extra ``tilescope[fast]``. Results, counters and hazards are the same.
            ``auto`` begins in NumPy and changes over where that pays; ``run.engine`` says which
            engine ran the launch, ``run.engine_note`` why the native one did not.

    Returns:
        The ``Run``: counters, hazards, output of ``printf``, and the trace if requested.

    Raises:
        PtxError: The PTX cannot be parsed, or uses an unsupported instruction.
        LaunchError: The grid, block, cluster, shared memory, schedule or a check name is invalid.
        TypeError: The number or a kind of the arguments is wrong; the message names the parameter.
        ValueError: An argument does not fit its parameter, or the architecture is unknown.
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
    if recorder and device is None:
        recorder.given = {
            "args": copies(args), "shared_bytes": shared_bytes, "cooperative": cooperative,
            "symbols": copies([symbols])[0] if symbols else None, "stack_bytes": stack_bytes,
            "cluster": cluster, "heap_bytes": heap_bytes,
        }  # fmt: skip
    prepared = prepare(
        kernel, grid, block, args, shared_bytes, schedule, step_limit, recorder is not None, arch,
        symbols, cooperative, stack_bytes, cluster, heap_bytes, device,
    )  # fmt: skip
    if recorder and device is not None:
        recorder.given = {
            "args": frozen(prepared.arguments), "shared_bytes": shared_bytes,
            "device": device.copy(reached(prepared.arguments)), "cooperative": cooperative,
            "stack_bytes": stack_bytes, "cluster": cluster, "heap_bytes": heap_bytes,
        }  # fmt: skip
    followed = bool(_listeners)
    of_module, keeps = current_memory() if device is None else (None, None)
    module_variables = of_module(kernel) if of_module else {}
    prepared = dataclasses.replace(
        prepared, counted=counters == "all", followed=followed, module_variables=module_variables,
        substituted=may_be_native(engine),
    )  # fmt: skip
    prepared.arguments.warn()
    chip = find(gpu) if isinstance(gpu, str) else gpu
    while True:
        try:
            cached = observe(prepared, chip) if chip else None  # before it changes its arrays
            outcome = run_to_verdict(
                prepared, asked, recorder, progress, workers=workers, engine=engine
            )
        except UnreachedMemoryError:
            assert device is not None
            everything = device_arguments(device, kernel, args, prepared.program, everything=True)
            prepared = dataclasses.replace(prepared, arguments=everything)
        else:
            break
    layout = prepared.program.layout
    touches = outcome.observers.touches
    copy_back(
        prepared.arguments, layout, outcome.allocations, "uninitialised" in asked,
        touches.stored if followed else lambda number, nbytes: None,
    )  # fmt: skip
    if device is not None and HEAP in outcome.allocations:
        device.heap = HeapContent.of(outcome.allocations[HEAP])
    if keeps:
        functions = prepared.program.module.functions
        module_variables |= module_variables_after(
            layout, functions, prepared.arguments, module_variables, outcome.allocations
        )
    run = report(prepared, outcome.observers, asked, began)
    run.workers, run.engine = outcome.workers, outcome.engine
    run.engine_note = outcome.engine_note
    if outcome.alone:
        run.notes += (f"one worker: {outcome.alone}",)
    if cached:
        count(run.counters, cached)
    given = limits or chip or LIMITS
    held_to = find(given) if isinstance(given, str) and given != "none" else given
    if asked and isinstance(held_to, Gpu) and may_lack(prepared.block, run.shared_bytes, held_to):
        hazards, notes = too_many(prepared, held_to, outcome.observers.sources)
        run.hazards[:0], run.notes = hazards, (*run.notes, *notes)
    if followed:
        arguments = prepared.arguments
        touched = touches.touched(arguments.arrays, arguments.labels)
        for callback in _listeners:
            callback(kernel, run, touched)
    return run


_Tell = Callable[[Kernel, Run, Sequence[ArrayFootprint]], None]
_listeners: list[_Tell] = []


@contextlib.contextmanager
def listen(tell: _Tell) -> Iterator[None]:
    """Call a function after each launch inside the ``with``, with the memory it accessed."""
    _listeners.append(tell)
    try:
        yield
    finally:
        _listeners.remove(tell)
