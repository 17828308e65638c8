"""Structures of CUDA that a program gets back, laid out as its version of CUDA has them."""

import functools
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent


@functools.cache
def h200() -> dict[str, dict[str, Any]]:
    """Return the answers of an H200: ``attribute_codes``, ``attributes``, ``cudaDeviceProp``.

    Read on 2026-11-27 with driver 580.159 and CUDA 13.0.
    """
    return _read("h200.json")


@functools.cache
def _layouts(version: int) -> dict[str, dict[str, Any]]:
    """Offsets and sizes of fields by structure, as a compiler lays them out for a version."""
    return _read(f"layouts_{version}.json")


def _read(name: str) -> dict[str, dict[str, Any]]:
    content: dict[str, dict[str, Any]] = json.loads((_FOLDER / name).read_text())
    return content


def structure(version: int, name: str, values: Mapping[str, Any]) -> bytes:
    """Return a structure's bytes; fields that a version has not are left out.

    Args:
        version: The major version of CUDA, 12 or 13.
        name: The structure's.
        values: By field: a number, three numbers, or a text.
    """
    raw, layout = bytearray(_layouts(version)["sizes"][name]), _layouts(version)[name]
    for field, value in values.items():
        if field not in layout:
            continue
        at, size = layout[field]
        if isinstance(value, (tuple, list)):
            raw[at : at + size] = struct.pack(f"<{len(value)}i", *value)
        elif isinstance(value, str):
            raw[at : at + size] = value.encode().ljust(size, b"\0")
        else:
            raw[at : at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
    return bytes(raw)
