"""Module variables that persist between launches, as long as their module is loaded.

A single launch finds ``__device__`` and ``__constant__`` variables as the module initialises them.
In a program of several launches they retain what the host and earlier launches stored (CUDA guide,
"Device Memory Specifiers"). Arrays have other addresses in each launch, so that an address in such
a variable counts as uninitialised.
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
    """Content of one variable.

    Attributes:
        content: Its bytes, ``(bytes,)``, uint8.
        own: Bytes with addresses that the module's initialiser contains; these differ in each
            launch.
        missing: Bytes that are uninitialised, or addresses of an earlier launch.
    """

    content: Flat
    own: Mask
    missing: Mask | None

    def over(self, initial: Flat) -> Flat:
        """Return the bytes for the next launch, over the module's initial ones."""
        return np.where(self.own, _filled(initial, len(self.content)), self.content)


def hold(
    memory: Allocation, initial: Flat, given: Mask, allocations: Mapping[int, Allocation]
) -> VariableState:
    """Return the state of a variable after a launch.

    ``given``: bytes that the host set to addresses. ``initial``: content before the launch.
    """
    content = memory.content().copy()
    address = given | _addresses(content, allocations)
    own = address & (content == _filled(initial, len(content))) & ~given
    lost = address & ~own
    missing = lost if memory.missing is None else lost | memory.missing
    return VariableState(content, own, missing if missing.any() else None)


def _filled(initial: Flat, nbytes: int) -> Flat:
    """Return a variable's initial bytes, padded with zeros."""
    return np.pad(initial, (0, nbytes - len(initial)))


def given_addresses(arguments: Arguments, name: str, nbytes: int) -> Mask:
    """Return which bytes set by the host are addresses, or derived from them."""
    found = np.zeros(nbytes, bool)
    if name in arguments.filled:
        for a in arguments.filled[name].addresses:
            found[a.at : a.at + (_TENSOR_MAP if isinstance(a.of, TensorMap) else _WORD)] = True
    return found


def _addresses(content: Flat, allocations: Mapping[int, Allocation]) -> Mask:
    """Return the bytes of words that are addresses of the launch's arrays or functions."""
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
    """Variables of all loaded modules.

    Attributes:
        contents: Their contents, by module and the variable's name in the PTX.
    """

    contents: dict[object, dict[str, VariableState]] = field(default_factory=dict)

    def of(self, kernel: Kernel) -> dict[str, VariableState]:
        """Return the variables of a kernel's module; kernels from one source share a module."""
        origin = kernel.origin
        known = (origin.source, origin.options) if origin else kernel.sha256
        return self.contents.setdefault(known if kernel.module is None else kernel.module, {})


_Find = Callable[[Kernel], dict[str, VariableState]]
_memories: list[tuple[_Find, bool]] = []


@contextlib.contextmanager
def keep(memory: ModuleMemory) -> Iterator[None]:
    """Make launches inside the ``with`` share module variables."""
    with _found(memory.of, True):
        yield


@contextlib.contextmanager
def as_of(kernel: Kernel) -> Iterator[None]:
    """Make launches inside see the variables of a kernel's next launch without changing them."""
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
    """Return the lookup of module variables, and whether launches update them."""
    return _memories[-1] if _memories else (None, False)
