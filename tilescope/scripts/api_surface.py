"""A module's public names: those with a stand-in are replaced, those that need a GPU refused."""

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
    """Go through a module and the public modules below it.

    What is callable, and its own package's, is refused by name when it is called, unless it has
    a stand-in or is kept; exceptions and plain values stay. So are names that a later version has.

    Args:
        module: Where to begin.
        patches: They are undone with these.
        stand_ins: By the name behind the module's, ``nvtx.mark`` say.
        keep: Names that work without a GPU; ``amp.*``: all in a module.
        advice: What to do instead of a name.
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
    """Whether it does something, and is the package's own."""
    if not callable(value) or isinstance(value, types.GenericAlias):
        return False
    if isinstance(value, type) and issubclass(value, BaseException):
        return False
    return str(getattr(value, "__module__", "") or package).partition(".")[0] == package


def _refused(value: Any, name: str, advice: Advice) -> Any:
    """What says that it has no stand-in; of a class, a class."""
    said = refuse(name, advice(name))
    if not isinstance(value, type):
        return functools.update_wrapper(said, value)
    return _Refused(value.__name__, (), {"_said": staticmethod(said)})


class _Refused(type):
    """The class of classes that cannot be had; ``isinstance`` works."""

    _said: Callable[..., Any]

    def __call__(cls, *_: Any, **__: Any) -> Any:
        return cls._said()

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return cls._said()
