"""How the arguments that a front end's user passes become the parameters of its kernel."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Adapter:
    """Between a front end's arguments and PTX' parameters.

    Attributes:
        given: Names of the arguments that the user passes.
        names: What to call each parameter of the PTX in reports.
        flatten: The parameters' values for the user's arguments; raises ``TypeError`` or
            ``ValueError`` for what the kernel was not compiled for.
    """

    given: tuple[str, ...]
    names: tuple[str, ...]
    flatten: Callable[[Sequence[Any]], list[Any]]

    def __call__(self, kernel: str, args: Sequence[Any]) -> list[Any]:
        """The parameters' values.

        Raises:
            TypeError: A wrong count or kind; ``ValueError``: a value that does not fit.
        """
        if len(args) != len(self.given):
            listed = ", ".join(self.given) or "none"
            raise TypeError(
                f"{kernel} takes {len(self.given)} arguments, not {len(args)}: {listed}"
            )
        return self.flatten(args)


@dataclass(frozen=True)
class Made:
    """What a front end's compiler made of a function.

    Attributes:
        text: PTX with one entry.
        name: What the user calls the kernel.
        adapter: From the user's arguments to the parameters.
        path: The Python file it was written in, for reports; ``None`` if there is none.
        dynamic_bytes: Dynamic shared memory that it needs.
    """

    text: str
    name: str
    adapter: Adapter
    path: Path | None
    dynamic_bytes: int = 0


def python_file(function: Any) -> Path | None:
    """The file in which a function was written."""
    code = getattr(getattr(function, "fn", function), "__code__", None)
    path = Path(code.co_filename) if code else None
    return path.resolve() if path and path.is_file() else None


def as_array(value: Any) -> Any:
    """The NumPy array that shares memory with an array of another library's; others as they are.

    PyTorch's 8-bit floats and bfloat16, which NumPy lacks, come as whole numbers of their size.
    """
    if isinstance(value, np.ndarray) or not hasattr(value, "data_ptr"):
        return value
    try:
        return value.detach().numpy()
    except TypeError:
        import torch  # it made the value

        plain = {1: torch.uint8, 2: torch.int16}[value.element_size()]
        return value.detach().view(plain).numpy()
