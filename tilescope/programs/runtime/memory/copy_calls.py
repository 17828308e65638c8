"""Copies and fills of linear memory and of variables."""

# ruff: noqa: D103 - CUDA's own documentation says what the functions do

from ..calls import signed, stands_in_for
from ..errors import INVALID_PITCH, INVALID_SYMBOL, INVALID_VALUE, SUCCESS
from ..state import Runtime
from .copies import DEFAULT, Box, Extent, MemoryCopy, MemoryFill


def is_pageable(runtime: Runtime, *addresses: int) -> bool:
    """Whether one of a copy's ends is memory of the host that is not pinned."""
    return any(runtime.device.bytes_at(address, 0) is None for address in addresses)


def copy(
    runtime: Runtime, to: Box, given: Box, extent: Extent, kind: int, stream: int | None
) -> int:
    """Copy a box in a stream; ``stream`` is ``None`` for calls that wait until it is done."""
    wide = extent.height > 1 or extent.depth > 1
    if wide and extent.nbytes and min(to.pitch, given.pitch) < extent.width:
        text = f"rows of {extent.width:,} bytes, wider than a pitch"
        runtime.checks.bad_copy(runtime.source, runtime.name, text)
        return INVALID_PITCH
    to, given = (one.moved(runtime.device_address(one.address)) for one in (to, given))
    work = MemoryCopy(runtime.source, runtime.name, to, given, extent, kind & 0xFFFFFFFF)
    waits = stream is None or is_pageable(runtime, to.address, given.address)
    return runtime.enqueue(stream or 0, work, waits, stream is None)


def fill(runtime: Runtime, to: Box, extent: Extent, value: bytes, stream: int | None) -> int:
    """Fill a box in a stream, as ``copy`` does."""
    work = MemoryFill(runtime.source, runtime.name, to, extent, value)
    return runtime.enqueue(stream or 0, work, False, stream is None)


@stands_in_for("cudaMemcpy")
def memcpy(runtime: Runtime, to: int, given: int, nbytes: int, kind: int, *_: int) -> int:
    return copy(runtime, Box(to), Box(given), Extent(nbytes), kind, None)


@stands_in_for("cudaMemcpyAsync")
def memcpy_async(
    runtime: Runtime, to: int, given: int, nbytes: int, kind: int, stream: int, *_: int
) -> int:
    return copy(runtime, Box(to), Box(given), Extent(nbytes), kind, stream)


@stands_in_for("cudaMemcpyPeer")
def memcpy_peer(
    runtime: Runtime, to: int, device: int, given: int, other: int, nbytes: int, *_: int
) -> int:
    if signed(device) or signed(other):
        return INVALID_VALUE
    return copy(runtime, Box(to), Box(given), Extent(nbytes), DEFAULT, None)


@stands_in_for("cudaMemcpyPeerAsync")
def memcpy_peer_async(
    runtime: Runtime, to: int, device: int, given: int, other: int, nbytes: int, stream: int
) -> int:
    if signed(device) or signed(other):
        return INVALID_VALUE
    return copy(runtime, Box(to), Box(given), Extent(nbytes), DEFAULT, stream)


@stands_in_for("cudaMemcpy2D")
def memcpy_2d(
    runtime: Runtime, to: int, pitch_to: int, given: int, pitch: int, width: int, height: int
) -> int:
    (kind,) = runtime.stack_words(1)
    return copy(runtime, Box(to, pitch_to), Box(given, pitch), Extent(width, height), kind, None)


@stands_in_for("cudaMemcpy2DAsync")
def memcpy_2d_async(
    runtime: Runtime, to: int, pitch_to: int, given: int, pitch: int, width: int, height: int
) -> int:
    kind, stream = runtime.stack_words(2)
    return copy(runtime, Box(to, pitch_to), Box(given, pitch), Extent(width, height), kind, stream)


# -- fills -----------------------------------------------------------------------------


@stands_in_for("cudaMemset")
def memset(runtime: Runtime, address: int, value: int, nbytes: int, *_: int) -> int:
    return fill(runtime, Box(address), Extent(nbytes), bytes([value & 255]), None)


@stands_in_for("cudaMemsetAsync")
def memset_async(
    runtime: Runtime, address: int, value: int, nbytes: int, stream: int, *_: int
) -> int:
    return fill(runtime, Box(address), Extent(nbytes), bytes([value & 255]), stream)


@stands_in_for("cudaMemset2D")
def memset_2d(
    runtime: Runtime, address: int, pitch: int, value: int, width: int, height: int, *_: int
) -> int:
    return fill(runtime, Box(address, pitch), Extent(width, height), bytes([value & 255]), None)


@stands_in_for("cudaMemset2DAsync")
def memset_2d_async(
    runtime: Runtime, address: int, pitch: int, value: int, width: int, height: int, stream: int
) -> int:
    return fill(runtime, Box(address, pitch), Extent(width, height), bytes([value & 255]), stream)


# -- variables -------------------------------------------------------------------------


def symbol_at(runtime: Runtime, symbol: int) -> int | None:
    """Return the address of a module's variable, by that of its host's stand-in."""
    found = runtime.symbols.get(symbol)
    if found is None or found.module.ptx is None:
        return None
    return runtime.device.module(found.module.ptx).addresses.get(found.name)


def _copy_symbol(
    runtime: Runtime, other: int, symbol: int, nbytes: int, offset: int, kind: int, stream: int,
    to_symbol: bool,
) -> int:  # fmt: skip
    at = symbol_at(runtime, symbol)
    if at is None:
        return INVALID_SYMBOL
    if offset + nbytes > runtime.symbols[symbol].nbytes:
        text = f"{nbytes:,} bytes from byte {offset:,} on, of a variable of "
        text += f"{runtime.symbols[symbol].nbytes:,} bytes"
        runtime.checks.bad_copy(runtime.source, runtime.name, text)
        return INVALID_VALUE
    to, given = (at + offset, other) if to_symbol else (other, at + offset)
    chosen = stream if "Async" in runtime.name else None
    return copy(runtime, Box(to), Box(given), Extent(nbytes), kind, chosen)


@stands_in_for("cudaMemcpyToSymbol", "cudaMemcpyToSymbolAsync")
def memcpy_to_symbol(
    runtime: Runtime, symbol: int, given: int, nbytes: int, offset: int, kind: int, stream: int
) -> int:
    return _copy_symbol(runtime, given, symbol, nbytes, offset, kind, stream, True)


@stands_in_for("cudaMemcpyFromSymbol", "cudaMemcpyFromSymbolAsync")
def memcpy_from_symbol(
    runtime: Runtime, to: int, symbol: int, nbytes: int, offset: int, kind: int, stream: int
) -> int:
    return _copy_symbol(runtime, to, symbol, nbytes, offset, kind, stream, False)


@stands_in_for("cudaGetSymbolAddress")
def symbol_address(runtime: Runtime, out: int, symbol: int, *_: int) -> int:
    at = symbol_at(runtime, symbol)
    if at is None:
        return INVALID_SYMBOL
    runtime.put(out, at)
    return SUCCESS


@stands_in_for("cudaGetSymbolSize")
def symbol_size(runtime: Runtime, out: int, symbol: int, *_: int) -> int:
    if symbol not in runtime.symbols:
        return INVALID_SYMBOL
    runtime.put(out, runtime.symbols[symbol].nbytes)
    return SUCCESS
