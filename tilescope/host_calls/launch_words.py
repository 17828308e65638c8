"""A program's launch as words of a command: its shape, and arrays of the sizes that it had."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from kernels import Kernel
from kernels.host.host_arguments import element_word
from kernels.source.element_types import is_structure, vector_of
from simulator import Device
from simulator.memory.storage.image_handles import HANDLES

from ..cli.argument_spec import TYPES

_ADDRESS_BYTES = 8


def launch_words(
    device: Device, kernel: Kernel, grid: Sequence[int], block: Sequence[int], args: Sequence[Any],
    shared_bytes: int, how: dict[str, Any],
) -> tuple[str, ...]:  # fmt: skip
    """Return kernel, shape and arguments as words; empty if a word cannot say one of them.

    Arrays have the sizes of their allocations, and other contents: zeros, or random floats.
    """
    arguments = [
        _word(device, kernel, number, arg, param.nbytes)
        for number, (arg, param) in enumerate(zip(args, kernel.params, strict=False))
    ]
    if not all(arguments) or len(arguments) != len(kernel.params) or "cluster" in how:
        return ()
    words = [kernel.name.partition("(")[0], "--grid", _shape(grid), "--block", _shape(block)]
    words += ["--shared", str(shared_bytes)] if shared_bytes else []
    words += ["--cooperative"] if how.get("cooperative") else []
    return (*words, *arguments)


def _word(device: Device, kernel: Kernel, number: int, arg: Any, nbytes: int) -> str:
    """Return one argument's word; empty if there is none."""
    kind, pointed = kernel.parameter_types[number], kernel.element_types[number]
    if not isinstance(arg, bytes) or not kind:
        return ""
    if pointed:
        address = int.from_bytes(arg, "little")
        found = device.find(address)
        plain = pointed.replace("const", "").strip()
        element = element_word(vector_of(plain)[0]) or ("u8" if is_structure(plain) else "")
        if found is None or found.address != address or not element:
            return ""
        count = found.nbytes * 8 // int(re.sub(r"\D", "", element))
        return f"{element}[{count}]" + "=normal" * (element[0] == "f")
    scalar = TYPES.get(element_word(kind))
    if _means_memory(device, int.from_bytes(arg, "little"), nbytes):
        return ""
    return str(np.frombuffer(arg[:nbytes], scalar)[0]) if scalar else ""


def _means_memory(device: Device, value: int, nbytes: int) -> bool:
    """Whether a scalar is an address of this run, or the handle of a texture or surface."""
    is_picture = value - HANDLES >> 8 in device.pictures
    return nbytes == _ADDRESS_BYTES and (is_picture or device.find(value) is not None)


def _shape(extents: Sequence[int]) -> str:
    numbers = list(extents)
    while len(numbers) > 1 and numbers[-1] == 1:
        numbers.pop()
    return ",".join(map(str, numbers))
