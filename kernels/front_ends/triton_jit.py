"""Triton's kernels: compiled without a GPU, called with what Triton's user passes.

Triton leaves constants out of the parameters and puts two pointers to scratch memory behind them
(Triton 3.9, ``backends/nvidia/driver.py``).
"""

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ..arguments.adapter import Adapter, Made, as_array, in_memory, python_file
from ..arguments.pointers import Pointer
from ..errors import KernelError
from ..machine_code.architecture import architecture
from .versions import warn_of

_ALIGNED = 16
_WITHOUT_TMA = 80
"""The architecture for which Triton makes pointers of tensor descriptors."""
_DESCRIPTOR = "tensordesc"
_POINTERS = f"tensor descriptors are pointers here: compiled for sm_{_WITHOUT_TMA}, without TMA"


def compiled(
    function: Any,
    signature: Mapping[str, str],
    constants: Mapping[str, Any],
    arch: str | int,
    divisible: Collection[str] | None,
    options: dict[str, Any],
) -> Made:
    """Return a kernel of a function that ``triton.jit`` made.

    Raises:
        KernelError: Triton is not installed, or refuses the function.
    """
    try:
        import triton
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource
    except ImportError as error:
        raise KernelError(f"Kernel.from_triton needs the extra 'triton': {error}") from None
    warn_of("Triton", triton.__version__)
    names = list(function.arg_names)
    given = tuple(name for name in names if name not in constants)
    if set(given) != set(signature) or not set(constants) <= set(names):
        said = [", ".join(some) or "none" for some in (names, signature, constants)]
        raise KernelError(
            "{} takes {}; the signature has {} of them, the constants {}".format(
                function.__name__, *said
            )
        )
    if divisible is None:
        divisible = [name for name in given if signature[name].startswith("*")]
    attributes = {(names.index(name),): [["tt.divisibility", _ALIGNED]] for name in divisible}
    kinds = {name: "constexpr" if name in constants else signature[name] for name in names}
    number = architecture(arch)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = triton.compile(
                ASTSource(function, kinds, dict(constants), attributes),
                target=GPUTarget("cuda", number, 32), options=options,
            )  # fmt: skip
    except Exception as error:  # Triton's errors have many bases
        raise KernelError(f"Triton refuses {function.__name__}: {error}") from error
    return from_compiled(made, function, given, [signature[name] for name in given], divisible)


def _without_descriptors(made: Any) -> Any:
    """Return a compiled kernel as it is on GPUs without TMA, if it has tensor descriptors."""
    import triton
    from triton.backends.compiler import GPUTarget

    described = any(_DESCRIPTOR in str(kind) for kind in made.src.signature.values())
    if not described and not made.metadata.global_scratch_size:
        return made
    names = ("num_warps", "num_stages", "maxnreg", "enable_fp_fusion")
    options = {name: getattr(made.metadata, name) for name in names}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return triton.compile(
            made.src, target=GPUTarget("cuda", _WITHOUT_TMA, 32), options=options
        )  # fmt: skip


def from_compiled(
    made: Any, function: Any, given: Sequence[str], kinds: Sequence[str], divisible: Collection[str]
) -> Made:
    """Return a kernel that Triton compiled, for arguments that are no constants.

    Raises:
        KernelError: It needs scratch memory.
    """
    name = function.__name__
    first, made = made, _without_descriptors(made)
    if made.metadata.global_scratch_size or made.metadata.profile_scratch_size:
        raise KernelError(f"{name} needs scratch memory, for a profiler say: leave that out")
    text = made.asm["ptx"]
    names = [part for one, kind in zip(given, kinds, strict=True) for part in _names(one, kind)]
    header = text[text.index(".entry") :].split(")")[0]
    hidden = header.count(".param ") - len(names)

    def flatten(args: Sequence[Any]) -> list[Any]:
        values: list[Any] = []
        for one, kind, arg in zip(given, kinds, args, strict=True):
            if kind.startswith(_DESCRIPTOR):
                values += _described(one, arg)
            else:
                values.append(_value(one, kind, as_array(arg), one in divisible))
        return values + [0] * hidden

    names += ("global scratch", "profile scratch")[:hidden]
    notes = () if made is first else (_POINTERS,)
    adapter = Adapter(tuple(given), tuple(names), flatten, True, notes)
    return Made(text, name, adapter, python_file(function), made.metadata.shared)


def _names(name: str, kind: str) -> list[str]:
    """Return the names of an argument's parameters (``triton.backends.driver``, descriptors)."""
    if not kind.startswith(_DESCRIPTOR):
        return [name]
    axes = range(kind.count(",", kind.index("[")) + 1)
    shape, strides = ([f"{name}.{of}[{i}]" for i in axes] for of in ("shape", "strides"))
    return [name, *shape, *strides, f"{name}.padding", f"{name}.round", *shape, *strides]


def _described(name: str, arg: Any) -> list[Any]:
    """Return a ``TensorDescriptor``'s values as parameters."""
    if not hasattr(arg, "block_shape"):
        raise TypeError(f"{name} is a TensorDescriptor, not {type(arg).__name__}")
    base = in_memory(name, as_array(getattr(arg.base, "array", arg.base)))
    shape = [*arg.shape, *arg.strides]
    return [base, *shape, arg.padding == "nan", arg.round_f32_to_tf32, *shape]


def _value(name: str, kind: str, arg: Any, divisible: bool) -> Any:
    """Return an argument's value, held to what the kernel was compiled for."""
    if kind.startswith("*"):
        offset = arg.nbytes if isinstance(arg, Pointer) else 0
        if divisible and offset % _ALIGNED:
            raise ValueError(
                f"{name} is compiled for addresses that are multiples of {_ALIGNED} bytes; "
                "leave it out of divisible="
            )
        return in_memory(name, arg) if isinstance(arg, np.ndarray) else arg
    if divisible and int(arg) % _ALIGNED:
        raise ValueError(f"{name} is compiled for multiples of {_ALIGNED}, not {arg}")
    if kind == "fp16":
        return np.float16(arg)
    return arg
