"""The library: each kernel with its launch for a given size, inputs and NumPy reference.

A family is a package below ``kernels`` whose ``__init__`` holds a tuple ``KERNELS`` of
``LibraryKernel``; it is found by being there. Command line, tests, examples and device all
take what they need from this one description::

    from kernels import library

    entry = library.get("matmul_tiled")
    launch = entry.launch(entry.parse_size("70x50x90"), tile=16, rng=np.random.default_rng(0))
    expected = launch.expected()
    run = simulator.launch(entry.kernel(tile=16), launch.grid, launch.block, launch.args)
    launch.compare(expected)
"""

import difflib
import functools
import importlib
import pkgutil
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import KernelError
from ..kernel import Kernel

Size = tuple[int, ...]


@dataclass(frozen=True)
class Expected:
    """Reference values of an output, with an error bound for each element.

    Values are float64, or whole numbers as they are: where no bound is, they are compared exactly.
    """

    value: Any
    bound: Any


@dataclass(frozen=True)
class Agreement:
    """How an output compares with its reference.

    Attributes:
        name: The output's name.
        within: Whether every element is within its bound.
        max_error: The largest absolute difference (NaN if an element is NaN on one side).
        wrong: How many elements are outside their bound, of ``elements``.
        used: The largest share of its bound that an element's error takes.
    """

    name: str
    within: bool
    max_error: float
    wrong: int
    elements: int
    used: float

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: a figure that is not finite becomes ``None``."""
        return {
            name: None if isinstance(value, float) and not np.isfinite(value) else value
            for name, value in self.__dict__.items()
        }


Reference = Callable[[Sequence[Any]], Mapping[str, Expected]]
"""From a launch's arguments, as they are before it, to what its outputs should become."""


@dataclass(frozen=True)
class Launch:
    """Launch of a library kernel: shape, arguments and reference.

    Attributes:
        grid: Blocks, x first; ``block``: threads of a block.
        args: As ``simulator.launch`` and ``device.launch`` take them.
        outputs: Names of the arrays that the kernel writes, with their place in ``args``.
        reference: The NumPy model of the kernel.
        shared_bytes: Dynamic shared memory of a block.
    """

    grid: tuple[int, ...]
    block: tuple[int, ...]
    args: list[Any]
    outputs: Mapping[str, int]
    reference: Reference
    shared_bytes: int = 0

    def expected(self) -> Mapping[str, Expected]:
        """Return the reference outputs; call it before a launch, which changes ``args``."""
        return self.reference(self.args)

    def compare(self, expected: Mapping[str, Expected]) -> list[Agreement]:
        """Hold the outputs, as they are now, to what was expected."""
        return [
            _agreement(name, self.args[place], expected[name])
            for name, place in self.outputs.items()
        ]


@dataclass(frozen=True)
class LibraryKernel:
    """One kernel of the library.

    Attributes:
        name: What the command line calls it.
        summary: One line.
        source: Its file, from the folder ``kernels``.
        entry: The kernel as C++ writes it; ``{tile}`` stands for the tile.
        axes: Names of the sizes, in the order of ``--size``.
        default_size: What a run takes without ``--size``.
        build_launch: Makes a launch from a size, a tile and a random generator; refuses
            what the kernel cannot do by a ``ValueError`` that names the restriction.
        tiles: The tiles it is made for; empty if it has none to choose.
        arch: The virtual architecture that it is written for.
        racy: Whether it has a data race: its output depends on the schedule.
        twin: For a faulty kernel, the correct one to hold it against.
    """

    name: str
    summary: str
    source: str
    entry: str
    axes: tuple[str, ...]
    default_size: Size
    build_launch: Callable[[Size, int, np.random.Generator], Launch] = field(repr=False)
    tiles: tuple[int, ...] = ()
    default_tile: int = 0
    racy: bool = False
    twin: str = ""
    arch: str = "compute_90"

    @property
    def path(self) -> Path:
        """The source file, in a checkout or where the package is installed."""
        return Path(str(resources.files(__package__).joinpath(self.source)))

    def parse_size(self, text: str) -> Size:
        """Read ``256x256x256``, or one number for all axes.

        Raises:
            ValueError: Not that.
        """
        shape = "x".join(self.axes)
        if not re.fullmatch(r"\d+(x\d+)*", text.strip(), re.I):
            raise ValueError(f"size {text!r} is not whole numbers as in {shape}")
        numbers = tuple(int(number) for number in text.lower().split("x"))
        if len(numbers) == 1:
            numbers *= len(self.axes)
        self._check_size(numbers)
        return numbers

    def launch(
        self,
        size: Size | None = None,
        tile: int | None = None,
        rng: np.random.Generator | None = None,
    ) -> Launch:
        """Grid, block and fresh arguments for a size.

        Args:
            size: One number an axis; the default size if left out.
            tile: One of ``tiles``; the default tile if left out.
            rng: Draws the inputs; seeded with 0 if left out.

        Raises:
            ValueError: A size or tile that this kernel cannot take.
        """
        size = self.default_size if size is None else tuple(size)
        self._check_size(size)
        return self.build_launch(size, self.check_tile(tile), rng or np.random.default_rng(0))

    def kernel(
        self,
        tile: int | None = None,
        arch: str | int | None = None,
        options: Sequence[str] = (),
        build: str = "device",
    ) -> Kernel:
        """Compile the kernel for the architecture that it is written for, or another one.

        Raises:
            ValueError: The kernel does not support the tile; otherwise as ``Kernel.from_cuda``.
        """
        entry = self.entry.format(tile=self.check_tile(tile))
        return Kernel.from_cuda(self.path, entry, arch or self.arch, options, build)

    def check_tile(self, tile: int | None) -> int:
        """Return the tile to take.

        Raises:
            ValueError: The kernel is not made for it.
        """
        if tile is None or tile == self.default_tile:
            return self.default_tile
        if not self.tiles:
            raise ValueError(f"{self.name} has no tile to choose")
        if tile not in self.tiles:
            listed = ", ".join(str(t) for t in self.tiles)
            raise ValueError(f"{self.name} has no tile of {tile}; there are: {listed}")
        return tile

    def _check_size(self, size: Size) -> None:
        if len(size) != len(self.axes):
            shape = "x".join(self.axes)
            raise ValueError(f"{self.name} takes a size as in {shape}, not {len(size)} numbers")
        for axis, number in zip(self.axes, size, strict=True):
            if number < 1:
                raise ValueError(f"{self.name}: {axis} must be 1 or more, not {number}")


@functools.cache
def _all() -> dict[str, LibraryKernel]:
    """Return every kernel of every family, in the families' order."""
    package = importlib.import_module(__package__)
    found: dict[str, LibraryKernel] = {}
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        if module.ispkg:
            for kernel in getattr(importlib.import_module(module.name), "KERNELS", ()):
                if kernel.name in found:
                    raise RuntimeError(f"two library kernels are called {kernel.name}")
                found[kernel.name] = kernel
    return found


def names() -> list[str]:
    """Return names of all kernels, family by family."""
    return list(_all())


def get(name: str) -> LibraryKernel:
    """Return the kernel of that name.

    Raises:
        KernelError: There is none; the message names the nearest.
    """
    found = _all().get(name)
    if found is None:
        near = difflib.get_close_matches(name, names(), n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else "tilescope list shows them all"
        raise KernelError(f"no kernel {name!r} in the library; {hint}")
    return found


def _agreement(name: str, actual: Any, expected: Expected) -> Agreement:
    value, bound = np.broadcast_arrays(expected.value, expected.bound)
    with np.errstate(invalid="ignore", over="ignore"):
        exact, wanted = actual.astype(np.float64), value.astype(np.float64)
        same = (actual == value) | (np.isnan(exact) & np.isnan(wanted))
        error = np.where(same, 0.0, np.abs(exact - wanted))
        if actual.dtype.kind in "iu":  # of large ones the difference is lost in float64
            error = np.where(same, 0.0, np.maximum(error, 1.0))
        right = same | (error <= bound)
        used = np.divide(error, bound, out=np.where(same, 0.0, np.inf), where=bound > 0)
    return Agreement(
        name,
        bool(right.all()),
        float(error.max(initial=0.0)),
        int(np.count_nonzero(~right)),
        int(actual.size),
        float(used.max(initial=0.0)),
    )
