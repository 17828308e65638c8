"""Public names of a module: replaced by stand-ins, or rejected if they need a GPU."""

import functools
import types
from collections.abc import Callable, Collection, Mapping
from types import ModuleType
from typing import Any

from .patches import Patches
from .virtual_device import refuse

Advice = Callable[[str], str]


def replace_public(
    module: ModuleType, patches: Patches, stand_ins: Mapping[str, Any],
    keep: Collection[str] = (), advice: Advice = lambda name: "",
) -> None:  # fmt: skip
    """Patch a module and its public submodules.

    Callables of the module's package without stand-in raise an error when called, unless they are
    in ``keep``. Exceptions and plain values are unchanged. This includes names of later versions.

    Args:
        module: The module.
        patches: Collects the patches, to undo them.
        stand_ins: Replacements by name relative to the module, such as ``nvtx.mark``.
        keep: Names that work without a GPU; ``amp.*``: all names of a module.
        advice: Returns an alternative for a rejected name.
    """
    _replace(_Walk(module, patches, stand_ins, keep, advice), module, "")


class _Walk:
    def __init__(
        self, module: ModuleType, patches: Patches, stand_ins: Mapping[str, Any],
        keep: Collection[str], advice: Advice,
    ) -> None:  # fmt: skip
        self.patches, self.stand_ins, self.keep, self.advice = patches, stand_ins, keep, advice
        self.root = module.__name__
        self.package = self.root.partition(".")[0]
        self.visited: set[str] = set()
        self.made: dict[int, Any] = {}
        """By what was replaced: it may be there under several names."""


def _replace(walk: _Walk, module: ModuleType, prefix: str) -> None:
    walk.visited.add(module.__name__)
    inner = []
    for name in [name for name in dir(module) if not name.startswith("_")]:
        value, path = getattr(module, name), prefix + name
        if path in walk.stand_ins:
            walk.made[id(value)] = walk.stand_ins[path]
        if id(value) in walk.made:
            walk.patches.set(module, name, walk.made[id(value)])
        elif isinstance(value, ModuleType):
            if value.__name__.startswith(f"{walk.root}.") and value.__name__ not in walk.visited:
                inner.append((value, value.__name__.removeprefix(f"{walk.root}.") + "."))
        elif path not in walk.keep and f"{prefix}*" not in walk.keep and _own(value, walk.package):
            walk.made[id(value)] = refused = _refused(value, f"{walk.root}.{path}", walk.advice)
            walk.patches.set(module, name, refused)
    for value, path in inner:
        _replace(walk, value, path)


def _own(value: Any, package: str) -> bool:
    """Whether a value is a callable of the package itself."""
    if not callable(value) or isinstance(value, types.GenericAlias):
        return False
    if isinstance(value, type) and issubclass(value, BaseException):
        return False
    return str(getattr(value, "__module__", "") or package).partition(".")[0] == package


def _refused(value: Any, name: str, advice: Advice) -> Any:
    """Return a function or class that raises the error."""
    said = refuse(name, advice(name))
    if not isinstance(value, type):
        return functools.update_wrapper(said, value)
    return _Refused(value.__name__, (), {"_said": staticmethod(said)})


class _Refused(type):
    """Metaclass of rejected classes, for which ``isinstance`` works."""

    _said: Callable[..., Any]

    def __call__(cls, *_: Any, **__: Any) -> Any:
        return cls._said()

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return cls._said()
