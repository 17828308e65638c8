"""The macros that ``nvcc`` has of itself and of the host's compiler, and NVRTC has not."""

import re

from ..source.preprocessor import directives

WORDS = (
    "-D__asm__=asm", "-D__asm=asm", "-D__extension__=", "-D__const=const", "-D__const__=const",
    "-D__signed=signed", "-D__signed__=signed", "-D__volatile=volatile", "-Dregister=",
)  # fmt: skip
"""What nvcc takes from GCC as another spelling, and NVRTC does not know."""

_NUMBERS = """
__CHAR_BIT__ 8, __SCHAR_MAX__ 0x7f, __SHRT_MAX__ 0x7fff, __INT_MAX__ 0x7fffffff,
__LONG_MAX__ 0x7fffffffffffffffL, __LONG_LONG_MAX__ 0x7fffffffffffffffLL,
__INT32_MAX__ 0x7fffffff, __UINT32_MAX__ 0xffffffffU, __INT64_MAX__ 0x7fffffffffffffffL,
__UINT64_MAX__ 0xffffffffffffffffUL, __SIZE_MAX__ 0xffffffffffffffffUL,
__SIZEOF_SHORT__ 2, __SIZEOF_INT__ 4, __SIZEOF_LONG__ 8, __SIZEOF_LONG_LONG__ 8,
__SIZEOF_POINTER__ 8, __SIZEOF_SIZE_T__ 8, __SIZEOF_FLOAT__ 4, __SIZEOF_DOUBLE__ 8,
__FLT_RADIX__ 2, __FLT_MANT_DIG__ 24, __FLT_DIG__ 6, __FLT_MIN_EXP__ (-125), __FLT_MAX_EXP__ 128,
__FLT_MIN_10_EXP__ (-37), __FLT_MAX_10_EXP__ 38,
__FLT_MIN__ 1.17549435082228750796873653722224568e-38F,
__FLT_MAX__ 3.40282346638528859811704183484516925e+38F,
__FLT_EPSILON__ 1.19209289550781250000000000000000000e-7F,
__FLT_DENORM_MIN__ 1.40129846432481707092372958328991613e-45F,
__DBL_MANT_DIG__ 53, __DBL_DIG__ 15, __DBL_MIN_EXP__ (-1021), __DBL_MAX_EXP__ 1024,
__DBL_MIN_10_EXP__ (-307), __DBL_MAX_10_EXP__ 308,
__DBL_MIN__ 2.22507385850720138309023271733240406e-308,
__DBL_MAX__ 1.79769313486231570814527423731704357e+308,
__DBL_EPSILON__ 2.22044604925031308084726333618164062e-16,
__DBL_DENORM_MIN__ 4.94065645841246544176568792868221372e-324
"""  # those of numbers with a point as <cuda/std/climits> has them, which may define them again
_ASKED_FOR = {
    "__NVCC__": 1, "__GNUC__": 13, "__GNUC_MINOR__": 3, "__GNUC_PATCHLEVEL__": 0, "__GNUG__": 13,
    "__linux__": 1, "__linux": 1, "__unix__": 1, "__unix": 1, "__gnu_linux__": 1,
    "__x86_64__": 1, "__x86_64": 1, "__amd64__": 1, "__amd64": 1,
    "__BYTE_ORDER__": 1234, "__ORDER_LITTLE_ENDIAN__": 1234, "__ORDER_BIG_ENDIAN__": 4321,
    "__BYTE_ORDER": 1234, "__LITTLE_ENDIAN": 1234, "__BIG_ENDIAN": 4321,
}  # fmt: skip
_PREFIX = "TILESCOPE_"
_ASKED = re.compile(rf"\b(?:{'|'.join(_ASKED_FOR)})\b")

OPTIONS = (
    *WORDS,
    *("-D" + "=".join(number.split()) for number in _NUMBERS.split(",")),
    *(f"-D{_PREFIX}{name}={value}" for name, value in _ASKED_FOR.items()),
)
"""What makes NVRTC know them; those of directives by names that ``as_nvcc`` gives them."""


def asks_for_host(text: str) -> bool:
    """Whether a text may depend on the host: on its compiler, system and processor."""
    return bool(_ASKED.search(text))


def as_nvcc(text: str) -> str:
    """Return a user's text whose directives find nvcc there, with GCC on Linux.

    NVIDIA's headers have to find NVRTC still: so the names are others in the user's texts alone.
    """
    if not asks_for_host(text):
        return text
    parts, at = [], 0
    for start, end in directives(text):
        parts += [text[at:start], _ASKED.sub(lambda m: _PREFIX + m[0], text[start:end])]
        at = end
    return "".join([*parts, text[at:]])


def with_own_names(log: str) -> str:
    """Return a compiler log with the names that the user wrote."""
    return log.replace(_PREFIX + "__", "__")
