"""Calls on the handles and options of a library, which are the same in all of them."""

from collections.abc import Callable, Mapping
from typing import Any

from .calls import Compute, LibraryCall, setting

Find = Callable[[LibraryCall], Any]
"""Returns the object of a call's handle, or fails with the library's status."""


def option_setter(find: Find, attribute: str, argument: str = "value") -> Compute:
    """Return a call that sets an option of a handle."""

    @setting
    def compute(call: LibraryCall) -> None:
        setattr(find(call), attribute, call[argument])

    return compute


def option_getter(find: Find, attribute: str, nbytes: int) -> Compute:
    """Return a call that writes an option of a handle, of so many bytes, to ``out``."""

    @setting
    def compute(call: LibraryCall) -> None:
        call.put("out", getattr(find(call), attribute), nbytes)

    return compute


def hint(find: Find) -> Compute:
    """Return a call whose option changes nothing here; its handle has to be one."""

    @setting
    def compute(call: LibraryCall) -> None:
        find(call)

    return compute


def destroyer(find: Find, argument: str) -> Compute:
    """Return a call that ends a handle."""

    @setting
    def compute(call: LibraryCall) -> None:
        find(call)
        del call.runtime.libraries.handles[call[argument]]

    return compute


def version(number: int) -> Compute:
    """Return a call that writes the library's version to ``out``."""

    @setting
    def compute(call: LibraryCall) -> None:
        call.put("out", number, 4)

    return compute


def status_text(names: Mapping[int, str]) -> Compute:
    """Return a call that returns the address of a status's name."""

    @setting
    def compute(call: LibraryCall) -> int:
        return call.runtime.text(names.get(call["status"], "unknown error"))

    return compute
