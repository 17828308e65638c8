"""Functions of mathematics for whole numbers and for arguments of several types, as nvcc has them.

The C++ standard ("Additional overloads") takes a whole number as a ``double`` and several arguments
as the largest of their types. NVRTC has each function for ``float`` and for ``double`` alone, and
calls ``sqrt(n)`` or ``pow(x, 2.0)`` ambiguous.
"""

import re
from collections.abc import Collection, Iterable

_ARGUMENTS = {
    1: "sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh "
       "asinh acosh atanh ceil floor trunc round rint nearbyint fabs erf erfc tgamma lgamma logb",
    2: "pow atan2 fmod fmin fmax hypot copysign fdim remainder nextafter",
    3: "fma",
}  # fmt: skip
_COUNTS = {name: count for count, names in _ARGUMENTS.items() for name in names.split()}
_AMBIGUOUS = re.compile(r'more than one instance of overloaded function "(?:\w+::)*(\w+)" matches')
_WHOLE = ("bool", "char", *(
    f"{sign} {type}" for sign in ("signed", "unsigned")
    for type in ("char", "short", "int", "long", "long long")
))  # fmt: skip
HEADER = "tilescope/promotions"
"""The name under which the text is included."""


def ambiguous(errors: Iterable[str]) -> set[str]:
    """Return functions of mathematics that errors call ambiguous."""
    found = (_AMBIGUOUS.search(error) for error in errors)
    return {match[1] for match in found if match and match[1] in _COUNTS}


def text(names: Collection[str]) -> str:
    """Declares such functions for all types of numbers."""
    lines = ["#pragma once", "template <class T> struct tilescope_real {};"]
    kinds = {"float": "float", **dict.fromkeys(("double", *_WHOLE), "double")}
    lines += [
        f"template <> struct tilescope_real<{kind}> {{ typedef {real} type; }};"
        for kind, real in kinds.items()
    ]
    for name in sorted(names):
        letters = "abc"[: _COUNTS[name]]
        sum_of = " + ".join(f"typename tilescope_real<{x.upper()}>::type()" for x in letters)
        lines += [
            f"template <{', '.join(f'class {x.upper()}' for x in letters)}>",
            f"__device__ inline decltype({sum_of})",
            f"{name}({', '.join(f'{x.upper()} {x}' for x in letters)}) {{",
            f"    typedef decltype({sum_of}) real;",
            f"    return ::{name}({', '.join(f'(real){x}' for x in letters)});",
            "}",
            f"namespace std {{ using ::{name}; }}",
        ]
    return "\n".join([*lines, ""])
