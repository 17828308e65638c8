"""All forms that there are natively."""

from . import approximations, choices, conversions, floats, integers
from .table import native_form

__all__ = ["approximations", "choices", "conversions", "floats", "integers", "native_form"]
