"""Tensor maps as the driver encodes them."""

from kernels.tensor_map import TensorMap

from .driver import bindings, call


def encode(map_: TensorMap, address: int) -> bytes:
    """The bytes of a ``CUtensorMap`` of an array that stands at an address of the device.

    Elements are given as unsigned numbers of their size: copies take them as they are.
    """
    cuda, size = bindings(), map_.array.dtype.itemsize
    shape = tuple(reversed(map_.array.shape))
    rows, stride = [], size
    for extent in shape[:-1]:
        stride *= extent
        rows.append(cuda.cuuint64_t(stride))
    name = f"CU_TENSOR_MAP_SWIZZLE_{f'{map_.swizzle}B' if map_.swizzle else 'NONE'}"
    made = call(
        "cuTensorMapEncodeTiled",
        getattr(cuda.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_UINT{8 * size}"),
        len(shape), address, [cuda.cuuint64_t(n) for n in shape], rows or [cuda.cuuint64_t(0)],
        [cuda.cuuint32_t(n) for n in reversed(map_.box)],
        [cuda.cuuint32_t(n) for n in reversed(map_.steps)],
        cuda.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        getattr(cuda.CUtensorMapSwizzle, name),
        cuda.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_NONE,
        cuda.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )  # fmt: skip
    return b"".join(int(word).to_bytes(8, "little") for word in made.opaque)
