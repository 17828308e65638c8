"""Triton's kernels: compiled without a GPU, called with what Triton's user passes.

Triton leaves constants out of the parameters and puts two pointers to scratch memory behind them
(Triton 3.9, ``backends/nvidia/driver.py``).
"""

import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ..adapter import Adapter, Made, as_array, in_memory, python_file
from ..errors import KernelError
from ..pointers import Pointer

TESTED = "3.9"
_ALIGNED = 16


def compiled(
    function: Any,
    signature: Mapping[str, str],
    constants: Mapping[str, Any],
    arch: str,
    divisible: Collection[str] | None,
    options: dict[str, Any],
) -> Made:
    """A kernel of a function that ``triton.jit`` made.

    Raises:
        KernelError: Triton is not installed, or refuses the function.
    """
    try:
        import triton
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource
    except ImportError as error:
        raise KernelError(f"Kernel.from_triton needs the extra 'triton': {error}") from None
    if not triton.__version__.startswith(TESTED + "."):
        warnings.warn(f"Triton {triton.__version__}; what was tested is {TESTED}", stacklevel=3)
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
    number = int("".join(c for c in arch if c.isdigit()))
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


def from_compiled(
    made: Any, function: Any, given: Sequence[str], kinds: Sequence[str], divisible: Collection[str]
) -> Made:
    """A kernel that Triton compiled, for arguments that are no constants.

    Raises:
        KernelError: It needs scratch memory.
    """
    name = function.__name__
    if made.metadata.global_scratch_size or made.metadata.profile_scratch_size:
        raise KernelError(
            f"{name} needs scratch memory (tensor descriptors made on the device, or a profiler); "
            "give it pointers instead"
        )
    text = made.asm["ptx"]
    hidden = len(re.findall(r"\.param ", text.split(")")[0])) - len(given)

    def flatten(args: Sequence[Any]) -> list[Any]:
        values = [
            _value(one, kind, as_array(arg), one in divisible)
            for one, kind, arg in zip(given, kinds, args, strict=True)
        ]
        return values + [0] * hidden

    names = (*given, *("global scratch", "profile scratch")[:hidden])
    adapter = Adapter(tuple(given), names, flatten, repeats=True)
    return Made(text, name, adapter, python_file(function), made.metadata.shared)


def _value(name: str, kind: str, arg: Any, divisible: bool) -> Any:
    """An argument's value, held to what the kernel was compiled for."""
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
