"""Module variables that persist between launches, as long as their module is loaded.

A single launch finds ``__device__`` and ``__constant__`` variables as the module initialises them.
In a program of several launches they retain what the host and earlier launches stored (CUDA guide,
"Device Memory Specifiers"). Arrays have other addresses in each launch, so that an address in such
a variable is reported as unset when it is read.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from kernels import Kernel
from kernels.arguments.convert import Arguments
from kernels.arguments.tensor_map import TensorMap

from ...core.geometry import Flat, Mask
from .layout import FUNCTIONS, array_address, array_number
from .spaces import Allocation

_WORD, _TENSOR_MAP = 8, 128
"""Bytes of an address or a handle, and of a tensor map."""


class VariableState(NamedTuple):
    """What one variable holds.

    Attributes:
        content: Its bytes, ``(bytes,)``, uint8.
        own: Which of them are addresses that the module itself has there: each launch has its own.
        missing: Which nobody has written, or are addresses of a launch that is over; or none.
    """

    content: Flat
    own: Mask
    missing: Mask | None

    def over(self, initial: Flat) -> Flat:
        """The bytes of the next launch, whose module begins with others."""
        return np.where(self.own, _filled(initial, len(self.content)), self.content)


def hold(
    memory: Allocation, initial: Flat, given: Mask, allocations: Mapping[int, Allocation]
) -> VariableState:
    """What a launch left in a variable.

    ``given``: bytes that were addresses when the host filled it; ``initial``: what it held then.
    """
    content = memory.content().copy()
    address = given | _addresses(content, allocations)
    own = address & (content == _filled(initial, len(content))) & ~given
    lost = address & ~own
    missing = lost if memory.missing is None else lost | memory.missing
    return VariableState(content, own, missing if missing.any() else None)


def _filled(initial: Flat, nbytes: int) -> Flat:
    """What a variable begins with; what comes after its initial values is zero."""
    return np.pad(initial, (0, nbytes - len(initial)))


def given_addresses(arguments: Arguments, name: str, nbytes: int) -> Mask:
    """Which bytes of what the host put into a variable are addresses, or made of them."""
    found = np.zeros(nbytes, bool)
    if name in arguments.filled:
        for a in arguments.filled[name].addresses:
            found[a.at : a.at + (_TENSOR_MAP if isinstance(a.of, TensorMap) else _WORD)] = True
    return found


def _addresses(content: Flat, allocations: Mapping[int, Allocation]) -> Mask:
    """Which bytes are of words that lie in an array of the launch, or are one of its functions."""
    found = np.zeros(len(content), bool)
    words = content[: len(content) // _WORD * _WORD].view(np.int64)
    numbers = array_number(words)
    for at in np.flatnonzero((numbers >= 0) & (numbers < 2 * FUNCTIONS)).tolist():
        word, number = int(words[at]), int(numbers[at])
        memory = allocations.get(number)
        if word == array_address(number) or (memory and memory.base <= word <= memory.end):
            found[at * _WORD : (at + 1) * _WORD] = True
    return found


@dataclass
class ModuleMemory:
    """The variables of the modules that a program has loaded.

    Attributes:
        contents: Their contents, by module and the variable's name in the PTX.
    """

    contents: dict[object, dict[str, VariableState]] = field(default_factory=dict)

    def of(self, kernel: Kernel) -> dict[str, VariableState]:
        """Those of a kernel's module: what was loaded, or else what is compiled from one source."""
        origin = kernel.origin
        known = (origin.source, origin.options) if origin else kernel.sha256
        return self.contents.setdefault(known if kernel.module is None else kernel.module, {})


_Find = Callable[[Kernel], dict[str, VariableState]]
_memories: list[tuple[_Find, bool]] = []


@contextlib.contextmanager
def keep(memory: ModuleMemory) -> Iterator[None]:
    """Launches inside find what those before them left in their modules' variables."""
    with _found(memory.of, True):
        yield


@contextlib.contextmanager
def as_of(kernel: Kernel) -> Iterator[None]:
    """Launches inside find what the next one of this kernel would, and leave it as it is."""
    known = _memories[-1][0](kernel) if _memories else {}
    with _found(lambda _: known, False):
        yield


@contextlib.contextmanager
def _found(find: _Find, changed: bool) -> Iterator[None]:
    _memories.append((find, changed))
    try:
        yield
    finally:
        _memories.pop()


def current_memory() -> tuple[_Find | None, bool]:
    """What finds what a kernel's variables hold, if any do, and whether it keeps what is left."""
    return _memories[-1] if _memories else (None, False)
