"""Tensor maps in the driver's encoding."""

from kernels.arguments.tensor_map import TensorMap

from .driver import bindings, call


def encode(map_: TensorMap, address: int) -> bytes:
    """Return the ``CUtensorMap`` bytes for an array at a device address."""
    cuda, shape = bindings(), tuple(reversed(map_.shape))
    rows = [cuda.cuuint64_t(stride) for stride in reversed(map_.strides)]
    name = f"CU_TENSOR_MAP_SWIZZLE_{f'{map_.swizzle}B' if map_.swizzle else 'NONE'}"
    if map_.corners is None:
        how = "Tiled"
        box: tuple[object, ...] = ([cuda.cuuint32_t(n) for n in reversed(map_.box)],)
    else:
        how, (pixels, channels) = "Im2col", map_.box
        box = (*(list(reversed(corner)) for corner in map_.corners), channels, pixels)
    kind = map_.type.replace("bf", "BFLOAT").replace("u", "UINT").replace("s", "INT")
    kind = f"FLOAT{kind[1:]}" if kind[0] == "f" else kind
    fill = "NAN_REQUEST_ZERO_FMA" if map_.nan else "NONE"
    made = call(
        f"cuTensorMapEncode{how}",
        getattr(cuda.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{kind}"),
        len(shape), address, [cuda.cuuint64_t(n) for n in shape], rows or [cuda.cuuint64_t(0)],
        *box, [cuda.cuuint32_t(n) for n in reversed(map_.steps)],
        cuda.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        getattr(cuda.CUtensorMapSwizzle, name),
        cuda.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_NONE,
        getattr(cuda.CUtensorMapFloatOOBfill, f"CU_TENSOR_MAP_FLOAT_OOB_FILL_{fill}"),
    )  # fmt: skip
    return b"".join(int(word).to_bytes(8, "little") for word in made.opaque)
