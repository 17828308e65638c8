"""cuBLAS's handles and options, and its copies of vectors and matrices."""

from ..runtime.calls import CALLS
from .calls import CallFailedError, Compute, Library, LibraryCall, setting
from .handle_calls import destroyer, hint, option_getter, option_setter, status_text, version

NOT_INITIALIZED, MAPPING_ERROR, EXECUTION_FAILED = 1, 11, 13
"""Of ``cublasStatus_t``."""
LIBRARY = Library("cuBLAS", EXECUTION_FAILED)
VERSION = 130000
_STATUSES = {
    0: "CUBLAS_STATUS_SUCCESS", 1: "CUBLAS_STATUS_NOT_INITIALIZED", 3: "CUBLAS_STATUS_ALLOC_FAILED",
    7: "CUBLAS_STATUS_INVALID_VALUE", 8: "CUBLAS_STATUS_ARCH_MISMATCH",
    11: "CUBLAS_STATUS_MAPPING_ERROR", 13: "CUBLAS_STATUS_EXECUTION_FAILED",
    14: "CUBLAS_STATUS_INTERNAL_ERROR", 15: "CUBLAS_STATUS_NOT_SUPPORTED",
    16: "CUBLAS_STATUS_LICENSE_ERROR",
}  # fmt: skip


class BlasHandle:
    """Settings of a ``cublasHandle_t``."""

    def __init__(self) -> None:
        self.stream = 0
        self.pointer_mode = 0
        self.math_mode = 0
        self.atomics = 0

    @property
    def on_device(self) -> bool:
        """Whether scalars are the device's."""
        return self.pointer_mode == 1


def handle_of(call: LibraryCall) -> BlasHandle:
    """Return what the call's handle stands for.

    Raises:
        CallFailedError: It is no handle, or is destroyed.
    """
    found = call.runtime.libraries.handles.get(call["handle"])
    if not isinstance(found, BlasHandle):
        raise CallFailedError(NOT_INITIALIZED)
    return found


@setting
def _create(call: LibraryCall) -> None:
    call.put("handle", call.runtime.libraries.add(BlasHandle()))


@setting
def _move(call: LibraryCall) -> int | None:
    """``cublasSetMatrix`` and its relatives: columns with their own distances."""
    names, size = call.arguments, call["size"]
    is_vector = "rows" not in names
    count = call["n"] if is_vector else call["columns"]
    width = size * (1 if is_vector else call["rows"])
    kind = 1 if "Set" in call.name else 2
    for i in range(count):
        to, given = (call[name] + i * call[step] * size
                     for name, step in (("to", "to_step"), ("given", "given_step")))  # fmt: skip
        if "stream" in names:
            failed = CALLS["cudaMemcpyAsync"](call.runtime, to, given, width, kind, call["stream"])
        else:
            failed = CALLS["cudaMemcpy"](call.runtime, to, given, width, kind)
        if failed:
            return MAPPING_ERROR
    return None


SETTINGS: tuple[tuple[str, str, Compute], ...] = (
    ("Create_v2", "*handle", _create),
    ("Destroy_v2", "*handle", destroyer(handle_of, "handle")),
    ("SetStream_v2", "*handle value:q", option_setter(handle_of, "stream")),
    ("GetStream_v2", "*handle *out", option_getter(handle_of, "stream", 8)),
    ("SetPointerMode_v2", "*handle value", option_setter(handle_of, "pointer_mode")),
    ("GetPointerMode_v2", "*handle *out", option_getter(handle_of, "pointer_mode", 4)),
    ("SetMathMode", "*handle value", option_setter(handle_of, "math_mode")),
    ("GetMathMode", "*handle *out", option_getter(handle_of, "math_mode", 4)),
    ("SetAtomicsMode", "*handle value", option_setter(handle_of, "atomics")),
    ("GetAtomicsMode", "*handle *out", option_getter(handle_of, "atomics", 4)),
    ("SetWorkspace_v2", "*handle *workspace bytes:q", hint(handle_of)),
    ("GetVersion_v2", "*handle *out", version(VERSION)),
    ("GetStatusString", "status", status_text(_STATUSES)),
    ("GetStatusName", "status", status_text(_STATUSES)),
    ("SetVector", "n size *given given_step *to to_step", _move),
    ("GetVector", "n size *given given_step *to to_step", _move),
    ("SetVectorAsync", "n size *given given_step *to to_step stream:q", _move),
    ("GetVectorAsync", "n size *given given_step *to to_step stream:q", _move),
    ("SetMatrix", "rows columns size *given given_step *to to_step", _move),
    ("GetMatrix", "rows columns size *given given_step *to to_step", _move),
    ("SetMatrixAsync", "rows columns size *given given_step *to to_step stream:q", _move),
    ("GetMatrixAsync", "rows columns size *given given_step *to to_step stream:q", _move),
)


def enter(name: str, parameters: str, compute: Compute) -> None:
    """Enter a function and its variant with whole numbers of 64 bits."""
    strides = {"strideA:q", "strideB:q", "strideC:q", "stream:q", "value:q", "bytes:q"}
    words = [word if word in strides else word.removesuffix(":q") for word in parameters.split()]
    LIBRARY.enter(f"cublas{name}", " ".join(words), compute)
    LIBRARY.enter(f"cublas{name}_64", parameters, compute)


for _name, _parameters, _compute in SETTINGS:
    enter(_name, _parameters, _compute)
