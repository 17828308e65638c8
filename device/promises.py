"""Result bits that PTX leaves unspecified, so that two correct machines may differ."""

import re

_ATOMIC = re.compile(r"\b(?:atom|red)\.[\w.:]*add\.[\w.]*(?:f16|bf16|f32|f64)")
_PLAIN = r"(?:\.ftz)?(?:\.sat)?\.(?:f16x2|f16|bf16x2|bf16|f32|f64)\s+"
_PRODUCT = re.compile(rf"\bmul{_PLAIN}(%\w+)")
_SUM = re.compile(rf"\b(?:add|sub){_PLAIN}([^;]*);")
_REGISTER = re.compile(r"%\w+")

APPROXIMATE = "instructions with an error bound only, such as .approx"
ATOMICS = "atomic additions of floating-point numbers, in any order"
FUSED = "a mul and an add without a rounding modifier, which the driver may fuse into an fma"


def unpromised(ptx: str, approximate: bool) -> tuple[str, ...]:
    """Return what PTX leaves unspecified in a kernel's results; empty if every bit is specified.

    ``approximate``: an instruction has an error bound only (``Run.approximate``).
    """
    found = [APPROXIMATE] if approximate else []
    if _ATOMIC.search(ptx):
        found.append(ATOMICS)
    if any(_fusable(body) for body in ptx.split("\n}")):
        found.append(FUSED)
    return tuple(found)


def _fusable(body: str) -> bool:
    """Whether a product without rounding modifier feeds a sum without one.

    PTX ISA, "Floating Point Instructions: add, mul": such a pair "may be optimized to use
    fused-multiply-add instructions on the target device".
    """
    products = set(_PRODUCT.findall(body))
    return bool(products) and any(
        not products.isdisjoint(_REGISTER.findall(operands)[1:]) for operands in _SUM.findall(body)
    )
