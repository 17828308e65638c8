"""Changing modules as they are imported, and undoing it."""

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType, TracebackType
from typing import Any

_NOTHING = object()
Install = Callable[[ModuleType, "Patches"], None]


class Patches(MetaPathFinder):
    """While it is entered, modules are patched after their import.

    Args:
        hooks: What to do with each module, by its name; done at once with those that are loaded.
    """

    def __init__(self, hooks: Mapping[str, Install]) -> None:
        self._hooks = dict(hooks)
        self._undo: list[Callable[[], None]] = []
        self._busy: set[str] = set()

    def __enter__(self) -> "Patches":
        sys.meta_path.insert(0, self)
        for name in self._hooks:
            if name in sys.modules:
                self._hooks[name](sys.modules[name], self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        sys.meta_path.remove(self)
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()

    def later(self, undo: Callable[[], None]) -> None:
        """Do something at the end."""
        self._undo.append(undo)

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Replace an attribute until the end."""
        old = vars(owner).get(name, _NOTHING)

        def undo() -> None:
            if old is _NOTHING:
                delattr(owner, name)
            else:
                setattr(owner, name, old)

        self._undo.append(undo)
        setattr(owner, name, value)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module as others find it, with a loader that patches it."""
        if name not in self._hooks or name in self._busy:
            return None
        self._busy.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._busy.discard(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Patching(spec.loader, self._hooks[name], self)
        return spec


class _Patching(Loader):
    """A module's own loader, and what is done after it."""

    def __init__(self, loader: Loader, install: Install, patches: Patches) -> None:
        self._loader, self._install, self._patches = loader, install, patches

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Create the module with its own loader."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Load it, then patch it."""
        self._loader.exec_module(module)
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._install(module, self._patches)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
