"""Which bits PTX leaves open: what makes equality of two machines a matter of luck."""

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
    """What of a kernel's results PTX does not promise to the bit; empty if all is promised.

    ``approximate``: it has instructions that promise an error bound only (``Run.approximate``).
    """
    found = [APPROXIMATE] if approximate else []
    if _ATOMIC.search(ptx):
        found.append(ATOMICS)
    if any(_fusable(body) for body in ptx.split("\n}")):
        found.append(FUSED)
    return tuple(found)


def _fusable(body: str) -> bool:
    """Whether a function has a product that goes into a sum, neither with a rounding modifier.

    PTX ISA, "Floating Point Instructions: add, mul": such a pair "may be optimized to use
    fused-multiply-add instructions on the target device".
    """
    products = set(_PRODUCT.findall(body))
    return bool(products) and any(
        not products.isdisjoint(_REGISTER.findall(operands)[1:]) for operands in _SUM.findall(body)
    )
