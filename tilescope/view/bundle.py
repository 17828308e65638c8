"""Bundling of ES modules into one script: a page opened from disk cannot import files."""

import re
from importlib.resources import files
from importlib.resources.abc import Traversable

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\.{1,2}/(?:\w+/)*(\w+)\.js";\n', re.M)
_IDLE = re.compile(r"^ +(?://.*\n| *$\n)?|^//.*\n", re.M)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const|let)\s+(\w+))", re.M)


def bundle(start: str) -> str:
    """Return a module and its imports as one script, each module in a function.

    The modules keep to one form: ``import { a, b } from "./name.js";`` at the top (or
    ``"../folder/name.js"``), and ``export`` in front of a declaration. Names are unique over the
    folders: ``model``, ``layout``, ``moment`` and ``draw``.
    """
    folder = files("tilescope.view") / "js"
    order: list[str] = []
    _visit(start, folder, order, ())
    parts = [_wrapped(name, _text(folder, name)) for name in order]
    return '"use strict";\n' + "\n".join(parts)


def _text(folder: Traversable, name: str) -> str:
    rooms = [folder, *(room for room in folder.iterdir() if room.is_dir())]
    found = next(file for room in rooms if (file := room / f"{name}.js").is_file())
    return found.read_text(encoding="utf-8")


def _visit(name: str, folder: Traversable, order: list[str], above: tuple[str, ...]) -> None:
    if name in above:
        raise ValueError(f"modules import each other: {' '.join((*above, name))}")
    if name in order:
        return
    for _, needed in _IMPORT.findall(_text(folder, name)):
        _visit(needed, folder, order, (*above, name))
    order.append(name)


def _wrapped(name: str, text: str) -> str:
    names = _EXPORT.findall(text)
    text = _IMPORT.sub(lambda m: f"const {{{m[1].replace(' as ', ': ')}}} = module_{m[2]};\n", text)
    text = _EXPORT.sub("", text)
    text = _IDLE.sub("", text)  # comments and indentation are useless in a page
    return f"const module_{name} = (() => {{\n{text}\nreturn {{ {', '.join(names)} }};\n}})();"


def styles() -> str:
    """Return all style sheets, in the order of their names."""
    folder = files("tilescope.view") / "css"
    sheets = sorted((f for f in folder.iterdir() if f.name.endswith(".css")), key=lambda f: f.name)
    return "\n".join(_IDLE.sub("", sheet.read_text(encoding="utf-8")) for sheet in sheets)
