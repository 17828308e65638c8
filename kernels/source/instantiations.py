"""Macros that stand for explicit instantiations of templates: ``MAKE(float)``."""

import re

from .preprocessor import Macros

_CALLED = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:\(([^()]*)\))?\s*;?\s*")
_INSTANCE = re.compile(r"\s*(?:extern\s+)?template\b([^;<(]*)[<(][^;]*(?:;|$)\s*")
_WORD = re.compile(r"[A-Za-z_]\w*")
_DEEP = 8


class Instantiations:
    """Template instantiations by macros of a source."""

    def __init__(self, macros: Macros) -> None:
        self._macros = macros
        self._known: dict[str, frozenset[str]] = {}

    def of(self, call: str) -> frozenset[str]:
        """Return the names of templates that a macro's call instantiates; none if it does more."""
        found = _CALLED.fullmatch(call)
        return self._called(found, 0) if found else frozenset()

    def _called(self, call: re.Match[str], depth: int) -> frozenset[str]:
        names = self._of_macro(call[1], depth)
        params = self._macros[call[1]].params if names else ()
        given = {param: _WORD.findall(word) for param, word in
                 zip(params, (call[2] or "").split(","), strict=False)}  # fmt: skip
        return frozenset(word for name in names for word in given.get(name, [name]))

    def _of_macro(self, name: str, depth: int) -> frozenset[str]:
        """Return the instantiations in a macro's text, in terms of its parameters."""
        if name in self._known or name not in self._macros or depth > _DEEP:
            return self._known.get(name, frozenset())
        self._known[name] = frozenset()  # of one that stands for itself
        names, at, body = set[str](), 0, self._macros[name].body
        while at < len(body):
            called, made = _CALLED.match(body, at), _INSTANCE.match(body, at)
            nested = self._called(called, depth + 1) if called else frozenset()
            if called and nested:
                names |= nested
                at = called.end()
            elif made and (words := _WORD.findall(made[1])):
                names.add(words[-1])
                at = made.end()
            else:
                return frozenset()
        self._known[name] = frozenset(names)
        return self._known[name]
