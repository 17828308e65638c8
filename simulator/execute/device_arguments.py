"""Arguments of a launch on a ``Device``: addresses, or arrays that lie in its memory.

A launch gets the allocations that it can reach: those that its parameters point to and, if the
program loads words that may be addresses, those that these and the module's variables point to, and
so on. Memory that is alive and out of reach costs a launch nothing.
"""

import itertools
from collections.abc import Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from kernels import Kernel
from kernels.arguments.convert import Arguments, convert
from kernels.arguments.pointers import AddressSlot, Gathered, first_byte
from kernels.arguments.values import Value
from kernels.ptx.module import Instruction
from kernels.source.structures import TypeLayout, layout_of

from ..compile.program import Program
from ..core.geometry import Flat
from ..isa.decoded import packs
from ..isa.memory.address_windows import ARRAY_BITS
from ..memory.storage.device import Device, DeviceAllocation
from ..memory.storage.layout import FUNCTIONS, MODULE_VARIABLES, array_address, array_number

_NOTHING = np.zeros(0, np.uint8)
_Array = NDArray[np.generic]
_WIDE = ("b64", "u64", "s64", "b128")


def device_arguments(
    device: Device, kernel: Kernel, given: Sequence[object], program: Program,
    everything: bool = False,
) -> Arguments:  # fmt: skip
    """Return a launch's parameters, and the memory of the device that it can reach.

    Args:
        device: The device.
        kernel: The kernel.
        given: For each parameter its bytes, a number (addresses among them), or what a launch
            without a device takes; arrays that lie in no allocation are adopted.
        program: The compiled kernel.
        everything: Whether all memory of the device is reached.

    Raises:
        TypeError: Another count of parameters, or an argument of a wrong kind.
        ValueError: A value does not fit its parameter.
    """
    found = _DeviceArrays(device)
    made = convert(kernel, [_raw(one) for one in given], kernel.labels(), gathered=found)
    made.values = [
        _with_addresses(device, value) if isinstance(value, Value) else value
        for value in made.values
    ]
    module = device.module(kernel.ptx, kernel.module or 0)
    made.symbols = dict(module.arrays)
    reach = _Reach(device)
    values = [*made.values, *made.tables.values()]
    for value in values:
        slots = value.addresses if isinstance(value, Value) else ()
        reach.add([value[0]] if isinstance(value, tuple) else [slot.array for slot in slots])
    made.pictures = device.pictures
    reach.add(device.pictures)
    if everything:
        reach.add([*device.allocations, *device.variables_by_number])
    elif program.analysis(loads_addresses):
        heap = [device.heap.content] if device.heap else []
        reach.follow([*module.arrays.values(), *heap])
    own = {array_number(address) for address in module.addresses.values()}
    made.others = {n: one for n, one in reach.variables.items() if n not in own}
    made.is_unreached = lambda number: reach.misses(number) and number not in own
    _enter(made, reach, found, kernel)
    return made


def _raw(given: object) -> object:
    """Return parameter bytes as a scalar that any parameter of their size takes."""
    if isinstance(given, (bytes, bytearray, memoryview)):
        return np.frombuffer(bytes(given), f"V{len(given)}")[0] if len(given) else bytes(given)
    return given


def _enter(made: Arguments, reach: "_Reach", found: "_DeviceArrays", kernel: Kernel) -> None:
    """Put the reached allocations into the arguments, each with its name for reports."""
    count = max(reach.numbers, default=-1) + 1
    made.arrays, made.labels = [None] * count, [""] * count
    for number in reach.numbers:
        live = reach.device.allocations.get(number)
        if live is None:
            made.arrays[number] = _NOTHING
            freed = reach.device.freed.get(number)
            made.labels[number] = freed.text if freed else "memory that is not allocated"
            continue
        made.labels[number] = f"memory allocated at {live.place}" if live.place else "memory"
        made.arrays[number] = found.views.get(number, live.array)
        if number not in found.views:
            made.plain.add(number)
        if live.buffer.nbytes % 32 == 0:
            made.buffers[number] = live.buffer
    named = set()
    for number, label in _labels(made, found, kernel):
        if number not in named and number in reach.device.allocations:
            named.add(number)
            made.labels[number] = label


def _labels(made: Arguments, found: "_DeviceArrays", kernel: Kernel) -> Iterable[tuple[int, str]]:
    """Yield the names of allocations that parameters point to."""
    names, kinds = kernel.labels(), kernel.parameter_types
    if len(names) == len(made.params):
        for i, (param, value) in enumerate(zip(made.params, made.values, strict=True)):
            slots = value.addresses if isinstance(value, Value) and names[i] else ()
            layout = layout_of(kinds[i], kernel.declarations) if param.is_struct else None
            for slot in slots:
                label = names[i] + (_member(layout, slot.at) if param.is_struct else "")
                yield slot.array, label
    yield from found.named


def _member(layout: TypeLayout | None, at: int) -> str:
    """``.rows[2]``, or what else the member at a byte of a structure is called."""
    for name, begin, kind in layout.fields if layout else ():
        if begin <= at < begin + kind.nbytes:
            return f".{name}" + _member(kind, at - begin)
    return ""


def _with_addresses(device: Device, value: Value) -> Value:
    """Return a value with a slot for every word that is an address of the device's memory."""
    known = {slot.at for slot in value.addresses}
    slots = list(value.addresses)
    for at in range(0, len(value.raw) // 8 * 8, 8):
        word = int.from_bytes(value.raw[at : at + 8], "little")
        if at in known or not word >> ARRAY_BITS - 1:
            continue
        number = array_number(word)
        if device.live(number) or device.freed_at(word):
            slots.append(AddressSlot(at, number, word - array_address(number)))
    return Value(value.raw, tuple(slots))


class _DeviceArrays(Gathered):
    """Arrays of arguments, each in an allocation of the device.

    Attributes:
        views: Arrays by number as the kernel was given them, with their shape and type.
        named: Allocations that arguments name, with the names.
    """

    def __init__(self, device: Device) -> None:
        super().__init__()
        self.device = device
        self.views: dict[int, _Array] = {}
        self.named: list[tuple[int, str]] = []

    def allocations(self) -> tuple[list[_Array | None], list[str], list[tuple[int, int]]]:
        """See ``Gathered``; the arrays are views of allocations."""
        places = []
        writable: dict[int, bool] = {}
        for array, label in zip(self.arrays, self.labels, strict=True):
            made = self.device.adopt(array)
            offset = first_byte(array) - first_byte(made.array)
            places.append((made.number, offset))
            self.named.append((made.number, label))
            writable[made.number] = writable.get(made.number, False) or array.flags.writeable
            view = _shaped(made, array)
            if made.number not in self.views or view.shape == array.shape:
                self.views[made.number] = view
        for number, is_writable in writable.items():
            if not is_writable:
                self.views[number] = self.views[number].view()
                self.views[number].flags.writeable = False
        count = max(self.views, default=-1) + 1
        labels = dict(reversed(self.named))
        return (
            [self.views.get(number) for number in range(count)],
            [labels.get(number, "") for number in range(count)],
            places,
        )


def _shaped(made: DeviceAllocation, array: _Array) -> _Array:
    """Return an allocation's bytes in an array's type, and in its shape if it covers them."""
    if not array.itemsize or made.nbytes % array.itemsize:
        return made.array
    view = made.array.view(array.dtype)
    if array.nbytes == made.nbytes and array.flags.c_contiguous:
        view = view.reshape(array.shape)
    return view


class _Reach:
    """Numbers of allocations that a launch can reach, freed ones among them, and variables."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.numbers: set[int] = set()
        self.variables: dict[int, tuple[str, Flat]] = {}
        self._new: list[Flat] = []

    def add(self, numbers: Iterable[int]) -> None:
        """Add allocations, freed memory or variables by their array numbers."""
        for number in numbers:
            if number in self.numbers or number in self.variables:
                continue
            variable = self.device.variable_at(number) if number >= MODULE_VARIABLES else None
            live = self.device.live(number)
            if variable:
                self.variables[number] = variable
                self._new.append(variable[1])
            elif live or number in self.device.freed:
                self.numbers.add(number)
                if live:
                    self._new.append(live.array)

    def misses(self, number: int) -> bool:
        """Whether there is memory of a number that is not reached."""
        is_there = self.device.live(number) or self.device.variable_at(number)
        return bool(is_there) and number not in self.numbers and number not in self.variables

    def follow(self, memories: Collection[Flat]) -> None:
        """Add what words of memory point to, and so on."""
        self._new += memories
        while self._new:
            memory = self._new.pop()
            words = np.asarray(memory)[: memory.nbytes // 8 * 8].view("<i8")
            numbers = (words >> ARRAY_BITS) - 1
            likely = numbers[(numbers >= 0) & (numbers < FUNCTIONS)]
            found = np.flatnonzero(np.bincount(likely)).tolist()  # 10x faster than np.unique
            for number in found:
                freed = self.device.freed.get(number)
                if freed is None or any(map(self.device.freed_at, words[numbers == number][:64])):
                    self.add([number])


def loads_addresses(program: Program) -> bool:
    """Whether a program loads words of 64 bits, or makes some of halves: they may be addresses."""
    if any(site.access != "store" and site.type in _WIDE for site in program.sites):
        return True
    bodies = (function.body for function in program.module.functions.values())
    instructions = itertools.chain.from_iterable(bodies)
    return any(isinstance(one, Instruction) and packs(one) for one in instructions)


def frozen(arguments: Arguments) -> list[object]:
    """Return a launch's parameters as a later one on a ``Device.snapshot`` takes them."""
    return [
        value.filled(array_address) if isinstance(value, Value) else value[1]
        for value in arguments.values
    ]


def reached(arguments: Arguments) -> list[int]:
    """Return numbers of the allocations that a launch reaches."""
    return [number for number, array in enumerate(arguments.arrays) if array is not None]
