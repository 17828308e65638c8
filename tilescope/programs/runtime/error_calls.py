"""Calls that query errors."""

# ruff: noqa: D103 - CUDA's own documentation says what the functions do

from .calls import stands_in_for
from .errors import SUCCESS, error_name, error_text
from .state import Runtime


@stands_in_for("cudaGetErrorString")
def get_error_string(runtime: Runtime, code: int, *_: int) -> int:
    return runtime.text(error_text(code & 0xFFFFFFFF))


@stands_in_for("cudaGetErrorName")
def get_error_name(runtime: Runtime, code: int, *_: int) -> int:
    return runtime.text(error_name(code & 0xFFFFFFFF))


@stands_in_for("cudaGetLastError")
def get_last_error(runtime: Runtime, *_: int) -> int:
    """Return and clear the last error; this call returns a sticky error once only."""
    last, runtime.last_error = runtime.last_error, SUCCESS
    return last


@stands_in_for("cudaPeekAtLastError")
def peek_at_last_error(runtime: Runtime, *_: int) -> int:
    return runtime.last_error
