"""Constants of a GPU as ``python -m benchmarks.gpu`` writes them."""

import json
from dataclasses import dataclass, fields, replace

from ..gpus.table import find
from .rates import Rates, rates


@dataclass(frozen=True)
class Measured:
    """What was measured on a GPU: its name in the table, and its constants."""

    gpu: str
    rates: Rates


def read(text: str) -> Measured:
    """Read such a file.

    Raises:
        ValueError: It is not one; says why.
    """
    content = json.loads(text)
    if not isinstance(content, dict) or not isinstance(content.get("rates"), dict):
        raise ValueError("not what python -m benchmarks.gpu writes: no table of rates")
    gpu, found = str(content.get("gpu", "")), content["rates"]
    known = {field.name for field in fields(Rates)} - {"measured"}
    for name, value in found.items():
        if name not in known:
            raise ValueError(f"no constant is called {name!r}")
        if not isinstance(value, int | float) or not value > 0:
            raise ValueError(f"{name} is not a positive number")
    figures = {name: float(value) for name, value in found.items()}
    return Measured(gpu, replace(rates(find(gpu)), measured=True, **figures))
