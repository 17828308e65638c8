"""Error codes of the runtime (CUDA Runtime API, "Data types used by CUDA Runtime", cudaError)."""

SUCCESS, INVALID_VALUE, MEMORY_ALLOCATION, INITIALIZATION_ERROR = 0, 1, 2, 3
INVALID_CONFIGURATION, INVALID_SYMBOL, INVALID_DEVICE_FUNCTION = 9, 13, 98
INVALID_DEVICE, INVALID_RESOURCE_HANDLE, ILLEGAL_ADDRESS = 101, 400, 700
ASSERT, LAUNCH_FAILURE, NOT_SUPPORTED = 710, 719, 801
_TEXTS = {
    SUCCESS: ("cudaSuccess", "no error"),
    INVALID_VALUE: ("cudaErrorInvalidValue", "invalid argument"),
    MEMORY_ALLOCATION: ("cudaErrorMemoryAllocation", "out of memory"),
    INITIALIZATION_ERROR: ("cudaErrorInitializationError", "initialization error"),
    INVALID_CONFIGURATION: ("cudaErrorInvalidConfiguration", "invalid configuration argument"),
    INVALID_SYMBOL: ("cudaErrorInvalidSymbol", "invalid device symbol"),
    INVALID_DEVICE_FUNCTION: ("cudaErrorInvalidDeviceFunction", "invalid device function"),
    INVALID_DEVICE: ("cudaErrorInvalidDevice", "invalid device ordinal"),
    INVALID_RESOURCE_HANDLE: ("cudaErrorInvalidResourceHandle", "invalid resource handle"),
    600: ("cudaErrorNotReady", "device not ready"),
    ILLEGAL_ADDRESS: ("cudaErrorIllegalAddress", "an illegal memory access was encountered"),
    704: ("cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"),
    ASSERT: ("cudaErrorAssert", "device-side assert triggered"),
    LAUNCH_FAILURE: ("cudaErrorLaunchFailure", "unspecified launch failure"),
    NOT_SUPPORTED: ("cudaErrorNotSupported", "operation not supported"),
}


def error_text(code: int) -> str:
    """``invalid argument`` for 1."""
    return _TEXTS.get(code, ("", "unrecognized error code"))[1]


def error_name(code: int) -> str:
    """``cudaErrorInvalidValue`` for 1."""
    return _TEXTS.get(code, (f"error {code}", ""))[0]


QUERIES = ("cudaGetErrorString", "cudaGetErrorName", "cudaGetLastError", "cudaPeekAtLastError")
"""Functions whose result is no new error."""
