"""Python expressions that convert values between types."""

from ...isa import DTYPES
from ..ir_values import Register, Temporary


def same_type(type: str, register: Register | Temporary) -> bool:
    """Whether a register stores values in the representation of a type."""
    return bool(DTYPES[type] == DTYPES[register.carrier])


def cast(name: str, carrier: str, type: str) -> str:
    """Return the expression of a carrier's value as another type."""
    have, want = DTYPES[carrier], DTYPES[type]
    if have == want:
        return name
    if have.itemsize == want.itemsize:
        return f"{name}.view(t_{type})"
    if have.itemsize < want.itemsize:  # an address
        return f"{name}.astype(t_{type})"
    integer = name if have.kind in "iu" else f"{name}.view(t_s{have.itemsize * 8})"
    return f"low({integer}, t_{type})"


def extended(expression: str, type: str, carrier: str) -> str:
    """Return the expression of a result, extended to its register's carrier."""
    have, want = DTYPES[type], DTYPES[carrier]
    if have == want:
        return expression
    if have.itemsize == want.itemsize:
        return f"{expression}.view(t_{carrier})"
    # Loads and conversions extend: signed types by sign, all others by zeros.
    if not type.startswith("s"):
        expression = f"{expression}.view(t_u{have.itemsize * 8})"
    expression = f"{expression}.astype(t_s{want.itemsize * 8})"
    return f"{expression}.view(t_{carrier})" if want.kind == "f" else expression
