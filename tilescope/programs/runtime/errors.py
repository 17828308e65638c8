"""Error codes of the runtime (CUDA Runtime API, "Data types used by CUDA Runtime", cudaError)."""

import functools
from pathlib import Path

SUCCESS, INVALID_VALUE, MEMORY_ALLOCATION, INITIALIZATION_ERROR = 0, 1, 2, 3
INVALID_CONFIGURATION, INVALID_SYMBOL, INVALID_DEVICE_FUNCTION = 9, 13, 98
INVALID_PITCH, INVALID_CHANNEL_DESCRIPTOR = 12, 20
INVALID_DEVICE, INVALID_RESOURCE_HANDLE = 101, 400
ILLEGAL_ADDRESS, MISALIGNED_ADDRESS = 700, 716
PEER_ACCESS_NOT_ENABLED = 705
ALREADY_REGISTERED, NOT_REGISTERED = 712, 713
ASSERT, LAUNCH_FAILURE, COOPERATIVE_TOO_LARGE, NOT_SUPPORTED = 710, 719, 720, 801
CAPTURE_UNSUPPORTED, CAPTURE_INVALIDATED, CAPTURE_UNMATCHED, CAPTURE_UNJOINED = 900, 901, 903, 904
CAPTURE_ISOLATION, CAPTURE_IMPLICIT, CAPTURED_EVENT, UPDATE_FAILURE = 905, 906, 907, 910
CAPTURE_MERGE = 902


@functools.cache
def _texts() -> dict[int, tuple[str, str]]:
    """Return names and texts by code, as ``cudaGetErrorString`` of CUDA 13.0 gives them."""
    lines = (Path(__file__).parent / "error_texts.txt").read_text().splitlines()
    rows = (line.split("\t") for line in lines)
    return {int(code): (name, text) for code, name, text in rows}


def error_text(code: int) -> str:
    """``invalid argument`` for 1."""
    return _texts().get(code, ("", "unrecognized error code"))[1]


def error_name(code: int) -> str:
    """``cudaErrorInvalidValue`` for 1."""
    return _texts().get(code, ("unrecognized error code", ""))[0]


QUERIES = ("cudaGetErrorString", "cudaGetErrorName", "cudaGetLastError", "cudaPeekAtLastError")
"""Functions whose result is no new error."""
