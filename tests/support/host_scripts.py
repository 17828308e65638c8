"""More scripts of GPU users: all of Numba's names, and the host at memory that a GPU reaches."""

NUMBA_NAMES = """
import contextlib, types, numpy as np
from numba import cuda, guvectorize, vectorize
from numba.cuda.cudadrv.devicearray import DeviceNDArray

d, h, s, e = cuda.to_device(np.arange(6.0)), np.arange(6.0), cuda.stream(), cuda.event()
DEVICE = "ldca ldcg ldcs ldcv ldlu stcg stcs stwb stwt literal_unroll".split()
COMPILE = ("compile compile_all compile_ptx declare_device jit vectorize guvectorize cuda_error "
           "prepare_shape_strides_dtype require_context").split()  # they ask for no GPU
CALLS = {
    "as_cuda_array": [d], "close": [], "current_context": [], "default_stream": [],
    "defer_cleanup": [], "detect": [], "device_array": [(2, 3)], "device_array_like": [d],
    "event": [], "event_elapsed_time": [e, e], "get_current_device": [], "is_available": [],
    "is_bfloat16_supported": [], "is_cuda_array": [d], "is_float16_supported": [],
    "is_fp8_supported": [], "is_supported_version": [], "legacy_default_stream": [],
    "list_devices": [], "managed_array": [3], "mapped": [h], "mapped_array": [3],
    "mapped_array_like": [h], "per_thread_default_stream": [], "pinned": [h], "pinned_array": [3],
    "pinned_array_like": [h], "profile_start": [], "profile_stop": [], "profiling": [],
    "select_device": [0], "stream": [], "synchronize": [], "to_device": [h],
}
REFUSED = ("compile_for_current_device", "compile_ptx_for_current_device", "external_stream",
           "from_cuda_array_interface", "open_ipc_array", "set_memory_manager")
for name in dir(cuda):
    value = getattr(cuda, name)
    if name.startswith("_") or not isinstance(value, (types.FunctionType, types.LambdaType)):
        continue
    if name in REFUSED:
        try:
            value(1)
        except NotImplementedError as error:
            assert f"no stand-in for numba.cuda.{name}; " in str(error), error
        else:
            raise AssertionError(name)
    elif name in CALLS:
        made = value(*CALLS[name])
        with made if hasattr(made, "__enter__") else contextlib.nullcontext():
            pass
    else:
        assert name in DEVICE or name in COMPILE, name
for wrong in ("d.sum()", "d.astype(int)", "d + 1", "d[[0, 2]]", "d.get_ipc_handle()", "-d"):
    try:
        eval(wrong)
    except (AttributeError, TypeError, NotImplementedError) as error:
        assert "DeviceNDArray" in str(error) or ";" in str(error) or "index" in str(error), error
    else:
        raise AssertionError(wrong)
assert isinstance(d, DeviceNDArray) and str(d).startswith("<")
d[1] = 9
d[2:4] = np.array([7.0, 8.0])
assert d[1] == 9 and (h + d)[3] == 11 and np.sum(d) == d.copy_to_host().sum() == 33
assert d.reshape(2, 3)[1].copy_to_host().tolist() == [8, 4, 5]

@cuda.jit
def plus(x, y):
    i = cuda.grid(1)
    y[i] = x[i] + 1

fresh = cuda.device_array(6)
plus[1, 4](d, fresh.ravel())  # what is written through a view is written
plus[1, 6](fresh, d)

@vectorize(["float64(float64, float64)"], target="cuda")
def weigh(a, b):
    return a * 2 + b

@guvectorize(["void(float64[:], float64[:])"], "(n)->(n)", target="cuda")
def turn(row, out):
    for i in range(row.shape[0]):
        out[i] = row[row.shape[0] - 1 - i]

assert weigh(h, 1.0).tolist() == (h * 2 + 1).tolist()
assert weigh(cuda.to_device(h), cuda.to_device(h)).copy_to_host().tolist() == (h * 3).tolist()
from numba.cuda.kernels.transpose import transpose

turned = transpose(cuda.to_device(h.reshape(2, 3))).copy_to_host()
assert turned.tolist() == h.reshape(2, 3).T.tolist()
assert turn(h.reshape(2, 3)).tolist() == [[2, 1, 0], [5, 4, 3]]
"""

HOST_READS = {
    "numba": """
import sys, numpy as np
from numba import cuda

@cuda.jit
def twice(x):
    x[cuda.grid(1)] *= 2

stream, host = cuda.stream(), cuda.pinned_array(32, np.float32)
host[:] = 1
x = cuda.to_device(host, stream=stream)
twice[1, 32, stream](x)
x.copy_to_host(host, stream=stream)
if "--faulty" not in sys.argv:
    stream.synchronize()
assert (host == 2).all()
mapped = cuda.mapped_array(32, np.float32)
mapped[:] = 3
twice[1, 32](mapped)
cuda.synchronize()
assert mapped[5] == 6
""",
    "torch": """
import sys, torch
side, host = torch.cuda.Stream(), torch.ones(32).pin_memory()
with torch.cuda.stream(side):
    x = host.to("cuda", non_blocking=True) * 2
    host.copy_(x, non_blocking=True)
if "--faulty" not in sys.argv:
    side.synchronize()
assert host.sum().item() == 64
""",
}
"""The host reads pinned memory that a copy writes; ``--faulty``: without waiting for it."""
