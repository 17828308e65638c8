"""Functions of the driver that programs of the runtime call: tensor maps, and a few queries."""

# ruff: noqa: D103 - CUDA's own documentation says what the functions do

from kernels.arguments.tensor_map import TYPES, TensorMap

from .calls import CALLS, UnsupportedCallError, signed, stands_in_for
from .device_calls import device_attribute, device_count, version
from .errors import INVALID_VALUE, SUCCESS, error_name, error_text
from .state import TOTAL_BYTES, Runtime

LIBRARY = "libcuda.so.1"
_TYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16")
"""By ``CUtensorMapDataType``."""
_SWIZZLES = (0, 32, 64, 128)
"""Bytes by ``CUtensorMapSwizzle``."""
_MAX_AXES = 5


@stands_in_for("cudaGetDriverEntryPoint", "cudaGetDriverEntryPointByVersion")
def driver_entry_point(
    runtime: Runtime, symbol: int, out: int, third: int, fourth: int, fifth: int, *_: int
) -> int:
    name = runtime.process.text(symbol)
    if name not in CALLS or not name.startswith("cu") or name.startswith("cuda"):
        raise UnsupportedCallError(f"{name[:80]} of the driver has no stand-in")
    runtime.put(out, runtime.connection.find(LIBRARY, name))
    status = fifth if runtime.name.endswith("ByVersion") else fourth
    if status:
        runtime.put(status, 0, 4)
    return SUCCESS


@stands_in_for("cuTensorMapEncodeTiled")
def encode_tiled(
    runtime: Runtime, out: int, kind: int, rank: int, address: int, dims: int, strides: int
) -> int:
    """Write the simulator's own encoding, which its tensor copies read."""
    box, steps, interleave, swizzle, _, fill = runtime.stack_words(6)
    axes, number = signed(rank), signed(kind)
    if signed(interleave) or not 0 <= number < len(_TYPES) or not 0 <= signed(swizzle) < 4:
        raise UnsupportedCallError(
            "cuTensorMapEncodeTiled with interleaving, TF32, or a newer type or swizzle has no "
            "stand-in"
        )
    if not 1 <= axes <= _MAX_AXES:
        return INVALID_VALUE
    shape = _numbers(runtime, dims, axes, 8)
    pitches = _numbers(runtime, strides, axes - 1, 8)
    size = TYPES[_TYPES[number]]
    span = sum((n - 1) * step for n, step in zip(shape, (*pitches, size), strict=True)) + size
    where = runtime.device_address(address)
    memory = runtime.device.bytes_at(where, span) if 0 < span < 1 << 40 else None
    try:
        if memory is None or where % 16:
            raise ValueError(f"{span:,} bytes at {address:#x} are no memory of the device")
        made = TensorMap(
            memory.view(f"u{size}"), _numbers(runtime, box, axes, 4), _SWIZZLES[signed(swizzle)],
            _numbers(runtime, steps, axes, 4), _TYPES[number], bool(signed(fill)),
            shape=shape, strides=pitches,
        )  # fmt: skip
    except ValueError as error:
        runtime.errors[f"cuTensorMapEncodeTiled at {runtime.place}: {error}"] += 1
        return INVALID_VALUE
    runtime.process.write(out, made.packed(where))
    return SUCCESS


def _numbers(runtime: Runtime, address: int, count: int, size: int) -> tuple[int, ...]:
    """Read whole numbers, and return them in reverse: the last axis is PTX's first."""
    raw = runtime.process.read(address, count * size) if count else b""
    return tuple(
        int.from_bytes(raw[i : i + size], "little") for i in reversed(range(0, len(raw), size))
    )


@stands_in_for("cuInit")
def init(runtime: Runtime, *_: int) -> int:
    return SUCCESS


@stands_in_for("cuCtxSynchronize")
def context_synchronize(runtime: Runtime, *_: int) -> int:
    runtime.show_printed()
    runtime.machine.order.synchronize()
    return runtime.sticky


@stands_in_for("cuDeviceGet")
def device_get(runtime: Runtime, out: int, number: int, *_: int) -> int:
    if signed(number):
        return INVALID_VALUE
    runtime.put(out, 0, 4)
    return SUCCESS


@stands_in_for("cuDeviceTotalMem_v2")
def total_memory(runtime: Runtime, out: int, *_: int) -> None:
    runtime.put(out, TOTAL_BYTES)


@stands_in_for("cuGetErrorString", "cuGetErrorName")
def driver_error_words(runtime: Runtime, code: int, out: int, *_: int) -> int:
    found = error_name(signed(code)) if runtime.name.endswith("Name") else error_text(signed(code))
    if found.startswith("cudaError"):
        words = "".join(f"_{c}" if c.isupper() else c for c in found.removeprefix("cudaError"))
        found = f"CUDA_ERROR{words.upper()}"
    runtime.put(out, runtime.text("CUDA_SUCCESS" if found == "cudaSuccess" else found))
    return SUCCESS


stands_in_for("cuDeviceGetCount")(device_count)
stands_in_for("cuDeviceGetAttribute")(device_attribute)
stands_in_for("cuDriverGetVersion")(version)
