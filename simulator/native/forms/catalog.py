"""All forms that there are natively."""

from . import choices, conversions, floats, integers
from .table import native_form

__all__ = ["choices", "conversions", "floats", "integers", "native_form"]
