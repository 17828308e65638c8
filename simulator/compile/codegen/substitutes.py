"""Functions that stand in for those of instructions in the generated code of a program."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager


class Substitutes:
    """Faster functions of the same results; they may come while launches run.

    Attributes:
        functions: By the names of generated code.
        tried: Whether such functions were looked for.
        seconds: CPU time of launches that would take them.
        least: CPU time from which on it is worth looking for them.
    """

    def __init__(self) -> None:
        self.functions: dict[str, object] = {}
        self.tried = False
        self.seconds = self.least = 0.0
        self._used: list[dict[str, object]] = []

    def add(self, functions: Mapping[str, object]) -> None:
        """Have the code of running and later launches call some functions."""
        self.tried = True
        self.functions |= functions
        for names in self._used:
            names |= functions

    @contextmanager
    def used_in(self, names: dict[str, object]) -> Iterator[None]:
        """Have the code of one launch call the functions; ``names``: its free names."""
        names |= self.functions
        self._used.append(names)
        try:
            yield
        finally:
            self._used[:] = [other for other in self._used if other is not names]
