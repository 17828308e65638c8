"""Calls of a library: their arguments by name, and the device's memory as arrays.

A row of a table is the function's name, its parameters as text, and what computes it. In the text
``*x`` is a pointer, ``x:q`` a whole number of 64 bits, ``x:f`` and ``x:d`` a float and a double by
value, and anything else an ``int``.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from simulator.host_checks import described

from ...sessions.recording import placed_at
from ..host_process import HostMemoryError
from ..runtime.calls import CALLS, UnsupportedCallError, signed
from ..runtime.state import Runtime
from .numbers import NumberType

_REGISTERS, _FLOATS = 6, 8
"""Integer and floating-point arguments that registers hold (System V ABI of x86-64)."""


class CallFailedError(Exception):
    """The call ends with a status of the library; a finding, if it is one, has been reported."""

    def __init__(self, status: int) -> None:
        self.status = status


@dataclass
class LibraryCall:
    """One call that is under way.

    Attributes:
        runtime: The runtime of the process that calls.
        name: The function.
        arguments: By the names of its row.
        failure: The library's status for memory that cannot be used.
        touched: Device memory that is read (``load``) or written (``store``): array, name, how.
    """

    runtime: Runtime
    name: str
    arguments: dict[str, Any]
    failure: int
    touched: list[tuple[Any, str, str]] = field(default_factory=list)

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    # -- the host's memory -------------------------------------------------------------

    def put(self, name: str, value: int, nbytes: int = 8) -> None:
        """Write a whole number to where a pointer to the host's memory points."""
        self.runtime.put(self[name], value, nbytes)

    def scalars(self, name: str, of: NumberType, count: int, on_device: bool) -> Any:
        """Return numbers that a pointer to the host's or the device's memory points to."""
        if on_device:
            return self.read(self.vector(name, count, 1, of), of)
        raw = self.runtime.process.read(self[name], count * of.nbytes)
        return of.decoded(np.frombuffer(raw, of.stored))

    def put_scalars(self, name: str, values: Any, of: NumberType, on_device: bool) -> None:
        """Write numbers to where a pointer points."""
        if on_device:
            view = self.vector(name, np.size(values), 1, of, "store")
            view[...] = of.encoded(np.reshape(values, -1))
        else:
            raw = of.encoded(np.reshape(values, -1)).tobytes()
            self.runtime.process.write(self[name], raw)

    # -- the device's memory -----------------------------------------------------------

    def view(
        self, name: str, shape: Sequence[int], strides: Sequence[int], of: NumberType,
        how: str = "load", address: int | None = None,
    ) -> Any:  # fmt: skip
        """Return device memory as an array.

        Args:
            name: The pointer's name, for reports.
            shape: Elements of each axis.
            strides: Elements from one to the next along each axis, not negative.
            of: What the elements are.
            how: ``load`` or ``store``.
            address: Where it begins, if not where the pointer points.

        Raises:
            CallFailedError: The memory is not the device's, is freed, or ends before the last
                element; that has been reported.
        """
        start = self[name] if address is None else address
        if 0 in shape:
            return np.zeros(tuple(shape), of.stored)
        last = sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
        content = self._bytes(name, start, (last + 1) * of.nbytes)
        self.touched.append((content, name, how))
        flat = content.view(of.stored)
        steps = [stride * of.nbytes for stride in strides]
        return np.lib.stride_tricks.as_strided(flat, tuple(shape), steps, subok=True)

    def _bytes(self, name: str, address: int, nbytes: int) -> Any:
        runtime, device = self.runtime, self.runtime.device
        found = device.bytes_at(address, nbytes)
        if found is not None:
            return found
        source, checks = runtime.source, runtime.checks
        if freed := device.freed_at(address):
            checks.use_after_free(source, self.name, name, freed)
        elif (whole := device.find(address)) is not None:
            past = address + nbytes - whole.address - whole.nbytes
            text = f"{name} ends {past:,} bytes past {described(whole)}"
            checks.bad_copy(source, self.name, text)
        else:
            checks.host_pointer(source, self.name, name)
        raise CallFailedError(self.failure)

    def vector(
        self, name: str, n: int, step: int, of: NumberType, how: str = "load",
        address: int | None = None,
    ) -> Any:  # fmt: skip
        """Return ``n`` elements, ``step`` apart; a negative step begins at the last (BLAS)."""
        made = self.view(name, (max(n, 0),), (abs(step),), of, how, address)
        return made[::-1] if step < 0 else made

    def matrix(
        self, name: str, rows: int, columns: int, leading: int, of: NumberType, how: str = "load",
        address: int | None = None,
    ) -> Any:  # fmt: skip
        """Return a column-major matrix."""
        return self.view(name, (rows, columns), (1, leading), of, how, address)

    def read(self, view: Any, of: NumberType) -> Any:
        """Return the numbers of a view; bytes that nothing has written are reported."""
        self.runtime.checks.host_unset(self.runtime.source, self.name, view)
        return of.decoded(np.array(view))

    def store(self, view: Any, name: str, values: Any, of: NumberType) -> None:
        """Store numbers in a view of the memory that an argument points to."""
        view[...] = of.encoded(values)
        for array, known, how in list(self.touched):
            if (known, how) == (name, "load"):
                self.touched.append((array, name, "store"))

    # -- order -------------------------------------------------------------------------

    def done(self, stream: int, waits: bool = False) -> None:
        """Enter what the call did into the order of its stream; ``waits``: the host waits.

        Raises:
            UnsupportedCallError: The stream is captured into a graph.
        """
        runtime = self.runtime
        stream = runtime.stream(stream)
        if stream in runtime.graphs.captures:
            raise UnsupportedCallError(f"{self.name} has no stand-in while a stream is captured")
        with placed_at(lambda: runtime.source):
            queue = runtime.streams.find(stream)
            runtime.machine.did(self.name, queue, waits, self.touched)


Compute = Callable[[LibraryCall], int | None]


@dataclass(frozen=True)
class Library:
    """Common parts of a library's calls.

    Attributes:
        name: As it is called in reports.
        failure: Its status for memory that cannot be used.
    """

    name: str
    failure: int

    def enter(self, function: str, parameters: str, compute: Compute) -> None:
        """Enter a row into the table of stand-ins."""
        words = parameters.split()
        computes = getattr(compute, "computes", True)

        def handler(runtime: Runtime, *_: int) -> int:
            call = LibraryCall(runtime, function, arguments(runtime, words), self.failure)
            if computes:
                runtime.libraries.count(self.name, function, runtime.source)
            try:
                return compute(call) or 0
            except CallFailedError as error:
                return error.status
            except HostMemoryError as error:
                runtime.checks.bad_copy(runtime.source, function, str(error))
                return self.failure

        CALLS[function] = handler


def setting(compute: Compute) -> Compute:
    """Mark a function that computes nothing: it makes a handle, or sets an option."""
    compute.computes = False  # type: ignore[attr-defined]
    return compute


def arguments(runtime: Runtime, words: Sequence[str]) -> dict[str, Any]:
    """Decode the arguments of the call under way, by their names."""
    frame, made = runtime.frame, {}
    integers, floats, stack = 0, 0, 0
    for word in words:
        name, _, kind = word.partition(":")
        is_float = kind in ("f", "d")
        if is_float and floats < _FLOATS:
            raw, floats = frame.floats[floats], floats + 1
        elif not is_float and integers < _REGISTERS:
            raw, integers = frame.registers[integers], integers + 1
        else:
            stack += 1
            raw = runtime.stack_words(stack)[-1]
        packed = struct.pack("<Q", raw)
        if is_float:
            made[name] = struct.unpack_from("<f" if kind == "f" else "<d", packed)[0]
        elif name.startswith("*"):
            made[name[1:]] = raw
        else:
            made[name] = struct.unpack("<q", packed)[0] if kind == "q" else signed(raw)
    return made
