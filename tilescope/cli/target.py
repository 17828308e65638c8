"""Resolution of a command line to a kernel and its launch."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from kernels import Kernel, library
from kernels.arguments.convert import convert
from kernels.arguments.symbols import convert_all
from kernels.compiler.process import CompilerCrash
from kernels.machine_code.cubin import without_other_kernels
from kernels.ptx.parser import parse
from kernels.source_access import plain_name
from simulator import Run
from simulator.isa.memory.stack import STACK_BYTES
from simulator.memory.storage.heap import HEAP_BYTES

from ..check.tolerance import Closeness, rounding
from ..text.launches import place
from .argument_spec import is_argument, parse_arguments
from .errors import UserError, note, warn
from .host_program import (
    host_launch,
    is_cuda,
    refuse_unknown_kernel,
    refuse_with_launches,
    single_launch,
)
from .kernel_names import is_file, names_a_kernel, only_kernel, refuse_pipeline, written_out
from .launch_option import with_launch
from .proposal import compile_first, refuse_with_proposal
from .references import expected, launch_of
from .request import Request


@dataclass
class Target:
    """A kernel and its launch.

    Attributes:
        name: Name in reports.
        kernel: The kernel.
        entry: Its library entry, for a library kernel.
        size, tile: Size and tile of a library kernel.
        expected: Expected outputs; ``None`` without a reference.
        launch: The launch with outputs, if there is a reference.
        closeness: Model of rounding errors, if the user gives no tolerance.
        file: The named file, if any.
        symbols: As for ``simulator.launch``.
        how: Its further arguments.
    """

    name: str
    kernel: Kernel
    grid: tuple[int, ...]
    block: tuple[int, ...]
    args: list[Any]
    shared_bytes: int = 0
    entry: library.LibraryKernel | None = None
    size: library.Size = ()
    tile: int = 0
    launch: library.Launch | None = field(default=None, repr=False)
    expected: Mapping[str, library.Expected] | None = field(default=None, repr=False)
    file: str = ""
    symbols: dict[str, Any] = field(default_factory=dict)
    how: dict[str, Any] = field(default_factory=dict)
    closeness: Closeness | None = field(default=None, repr=False)

    def compare(self, args: Sequence[Any], run: Run) -> list[library.Agreement]:
        """Compare the outputs of a run with the reference; widens bounds only if they matter."""
        if self.launch is None or self.expected is None:
            return []
        launch = replace(self.launch, args=list(args))
        found = launch.compare(self.expected)
        wrong = [agreement.name for agreement in found if not agreement.within]
        floats = [n for n in wrong if rounding(launch.args[launch.outputs[n]].dtype)]
        if self.closeness is None or not floats or not run.counted:
            return found
        ptx = without_other_kernels(self.kernel.ptx, self.kernel.entry)
        self.expected = self.closeness.widened(self.expected, floats, run, ptx)
        return launch.compare(self.expected)


def resolve(request: Request, reference: bool = True, warns: bool = True) -> Target:
    """Compile the requested kernel and create its arguments.

    Args:
        request: The command line.
        reference: Whether to compute the expected outputs. This takes seconds for large sizes, and
            has to happen before a launch modifies the arguments.
        warns: Whether to print warnings on the arguments, which the run has, too.

    Raises:
        UserError: The request does not describe a launch.
        KernelError: The kernel cannot be compiled.
        FileNotFoundError: There is no such file.
    """
    refuse_pipeline(request.target)
    from_file = is_file(request.target)
    target = _from_file(request) if from_file else _from_library(request, reference)
    check_arguments(target, warns)
    return target


def resolve_either(request: Request, warns: bool = True) -> Target:
    """Resolve a target; if the compiler crashes on the device build, use the source build.

    Raises:
        UserError, KernelError, FileNotFoundError: As ``resolve``.
    """
    try:
        return resolve(request, warns=warns)
    except CompilerCrash:
        if request.build:
            raise
        return resolve(replace(request, build="source"), warns=warns)


def check_arguments(target: Target, warns: bool = True) -> None:
    """Check the target's arguments as a launch would; ``warns``: whether to print warnings.

    Raises:
        UserError: They do not fit the kernel.
    """
    try:
        if target.symbols:
            module = parse(target.kernel.ptx)
            arguments = convert_all(target.kernel, module, target.args, target.symbols)
        else:
            arguments = convert(target.kernel, target.args, target.kernel.labels())
    except (TypeError, ValueError) as error:
        raise UserError(str(error)) from None
    for text in arguments.warnings * warns:
        warn(text)


def kernel_of(request: Request) -> Kernel:
    """Compile the requested kernel, whether or not it could be launched.

    Raises:
        UserError, KernelError, FileNotFoundError: As ``resolve``.
    """
    refuse_pipeline(request.target)
    if is_file(request.target):
        whole = with_launch(request, False) if request.launch else request
        return _kernel_of_file(whole)[0]
    entry = library.get(request.target)
    try:
        return _kernel_of_library(entry, request)
    except ValueError as error:
        raise UserError(str(error)) from None


def _from_library(request: Request, reference: bool) -> Target:
    entry = library.get(request.target)
    if request.words:
        raise UserError(
            f"{entry.name} makes its own arguments; {request.words[0]!r} is one too many "
            "(choose --size and --tile)"
        )
    if request.expect or request.reference or request.close:
        raise UserError(f"{entry.name} has a reference and a bound of its own")
    shape = request.grid, request.block, request.shared, request.cluster, request.launch
    if any(shape) or request.symbols or request.cooperative:
        raise UserError(f"{entry.name} sets its own launch shape; choose --size and --tile")
    try:
        size = entry.default_size if request.size is None else entry.parse_size(request.size)
        tile = entry.check_tile(request.tile)
        launch = entry.launch(size, tile, np.random.default_rng(request.seed))
    except ValueError as error:
        raise UserError(str(error)) from None
    kernel = _kernel_of_library(entry, request)
    return Target(
        entry.name, kernel, launch.grid, launch.block, launch.args, launch.shared_bytes,
        entry, size, tile, launch, launch.expected() if reference else None,
    )  # fmt: skip


def _kernel_of_library(entry: library.LibraryKernel, request: Request) -> Kernel:
    return entry.kernel(request.tile, request.arch, request.options, request.build or "device")


def _from_file(request: Request) -> Target:
    if request.size is not None or request.tile is not None:
        raise UserError("--size and --tile belong to library kernels; a file takes --grid, --block")
    try:
        if not request.launch and request.grid is None and len(request.words) < 2:
            request = _with_own_launch(request)
        if request.launch:
            request = with_launch(request)
    except UserError:
        compile_first(request.target, request.options)
        raise
    kernel, words = _kernel_of_file(request)
    if request.grid is None or request.block is None:
        missing = ("--grid", "4,4") if request.grid is None else ("--block", "16,16")
        raise UserError(
            f"{missing[0]} is missing: say how many blocks and threads, as in {' '.join(missing)}"
        )
    shapes = request.grid, request.block
    request, words = _own_symbols(request, words)
    rng = np.random.default_rng(request.seed)
    args = parse_arguments(words, rng, kernel.labels())
    grid, block = parse_shape("grid", shapes[0]), parse_shape("block", shapes[1])
    target = Target(
        kernel.name, kernel, grid, block, args, request.shared, file=request.target,
        symbols=_symbols(request, kernel, args), how=_how(request),
    )  # fmt: skip
    if request.expect or request.reference:
        places, target.expected, target.closeness = expected(
            kernel.labels(), args, request.expect, request.reference, request.close, rng
        )
        target.launch = launch_of(target, places, target.expected)
    elif request.close:
        raise UserError("--close says how nearly: give --expect or --reference, too")
    return target


def _with_own_launch(request: Request) -> Request:
    """Choose the only launch in the file's host code, read from the text, and say so.

    Raises:
        UserError: There are several, or there is none; the message has commands to choose from.
    """
    file, options = request.target, request.options
    if not is_cuda(file) or not all(names_a_kernel(w, file, options) for w in request.words):
        return request
    entry = request.words[0] if request.words else ""
    refuse_unknown_kernel(file, options, entry)
    number = single_launch(file, options, entry)
    if not number:
        refuse_with_launches(file, options)
        refuse_with_proposal(file, options, entry)
        return request
    one = host_launch(file, number, options)
    if one.known:
        words = shlex.join(one.words(plain_name(file)))
        note(f"launch {number}, {place(one.file, one.line)}, as the host code says: {words}")
    return replace(request, launch=number)


def _own_symbols(request: Request, words: list[str]) -> tuple[Request, list[str]]:
    """Move words that set variables (``sym:coeff=f32[4]``) to the symbols."""
    own = tuple(word.removeprefix("sym:") for word in words if word.startswith("sym:"))
    rest = [word for word in words if not word.startswith("sym:")]
    return replace(request, symbols=(*request.symbols, *own)), rest


def _how(request: Request) -> dict[str, Any]:
    """Return the arguments common to ``simulator.launch`` and ``device.launch``."""
    return {
        "cooperative": request.cooperative,
        "stack_bytes": STACK_BYTES if request.stack is None else request.stack,
        "heap_bytes": HEAP_BYTES if request.heap is None else request.heap,
        "cluster": None if request.cluster is None else parse_shape("cluster", request.cluster),
    }


def _symbols(request: Request, kernel: Kernel, args: Sequence[Any]) -> dict[str, Any]:
    """Return a kernel's module variables from words such as ``coeff=f32[4]=ones``.

    Values are argument words: ``p=struct(A[32:],i32:4)``, ``t=texture:linear:f32[8,8]``.
    """
    rng = np.random.default_rng(request.seed)
    pairs = [word.partition("=") for word in request.symbols]
    for name, _, word in pairs:
        if not name or not is_argument(word):
            raise UserError(f"--symbol {name}: give a name and an array, as in coeff=f32[4]=ones")
    names = kernel.labels()
    return {name: parse_arguments([word], rng, names, args)[0] for name, _, word in pairs}


def _kernel_of_file(request: Request) -> tuple[Kernel, list[str]]:
    """Return the kernel, and its argument words."""
    words = list(request.words)
    is_named = bool(words) and names_a_kernel(words[0], request.target, request.options)
    named = words.pop(0) if is_named else None
    if request.target.endswith(".ptx"):
        if request.build is not None:
            raise UserError(f"{request.target} is PTX: there is no build to choose")
        return Kernel.from_ptx(Path(request.target), named), words
    entry = named or only_kernel(request.target, request.options)
    entry = written_out(entry, words, request.target, request.options)
    kernel = Kernel.from_cuda(
        Path(request.target),
        entry,
        request.arch or "compute_90",
        request.options,
        request.build or "device",
    )
    return kernel, words


def parse_shape(name: str, text: str) -> tuple[int, ...]:
    """Parse one to three integers, x first; raises ``UserError``."""
    if not re.fullmatch(r"\d+([,x]\d+){0,2}", text):
        raise UserError(f"--{name} {text!r}: one to three whole numbers, x first, as in 4,4")
    return tuple(int(number) for number in re.split("[,x]", text))


def settled(target: Target) -> str:
    """Return size and tile of a library kernel as text."""
    if target.entry is None:
        return ""
    sizes = "x".join(str(number) for number in target.size)
    tile = f", tile {target.tile}" if target.entry.tiles else ""
    return f"{'x'.join(target.entry.axes)} = {sizes}{tile}"
