"""Template parameters, and which arguments the types of a call give them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

_QUALIFIERS = re.compile(r"\b(?:const|volatile|struct|restrict|__\w+__|__restrict)\b|&")


@dataclass(frozen=True)
class TemplateParameter:
    """One of a template's parameters.

    Attributes:
        kind: ``int``; ``""`` of a type.
        default: What stands for it where a call says nothing, ``""`` if there is none.
        pack: Whether it stands for any number of arguments.
    """

    name: str
    kind: str = ""
    default: str = ""
    pack: bool = False

    @property
    def example(self) -> str:
        """An argument that it may take."""
        return "true" if self.kind == "bool" else "32" if self.kind else "float"


def template_parameters(declaration: Node) -> tuple[TemplateParameter, ...]:
    """Return the parameters of a ``template <...>`` declaration."""
    listed = declaration.child_by_field_name("parameters")
    found = []
    for node in listed.named_children if listed else ():
        if node.type == "comment":
            continue
        typed = None if "type_parameter" in node.type else node.child_by_field_name("type")
        value = node.child_by_field_name("default_value") or node.child_by_field_name(
            "default_type"
        )
        names = [
            child for child in node.named_children
            if child.type in ("identifier", "type_identifier") and child not in (typed, value)
        ]  # fmt: skip
        named = names[0] if names else None
        pack = "variadic" in node.type
        found.append(TemplateParameter(_text(named), _text(typed), _text(value), pack))
    return tuple(found)


def deduced(
    parameters: Sequence[TemplateParameter],
    params: Sequence[str],
    given: Sequence[str | None],
    kinds: Sequence[str],
) -> list[str | None]:
    """Return the template arguments of a call, as many as have to be written; ``None``: not known.

    ``given``: those that the call writes; ``params``: the function's parameters' types, ``kinds``:
    those of the call's arguments, ``""`` where they are not known.
    """
    known: dict[str, set[str]] = {}
    for param, kind in zip(params, kinds, strict=False):
        (base, stars), (own, own_stars) = _parted(param), _parted(kind)
        if own and own != "auto" and stars <= own_stars:
            known.setdefault(base, set()).add(own + "*" * (own_stars - stars))
    found = [*given]
    for parameter in parameters[len(given) :]:
        said = known.get(parameter.name, set()) if not (parameter.kind or parameter.pack) else ()
        found.append(next(iter(said)) if len(said) == 1 else None)
    while len(found) > len(given) and found[-1] is None:
        last = parameters[len(found) - 1]
        if not (last.default or (last.pack and len(found) == len(parameters))):
            break
        found.pop()
    names = {parameter.name for parameter in parameters}
    for at, parameter in enumerate(parameters[len(given) : len(found)], len(given)):
        if names.isdisjoint(re.findall(r"\w+", parameter.default)):
            found[at] = found[at] or parameter.default or None
    return found


def _parted(kind: str) -> tuple[str, int]:
    """Return a type without its qualifiers, and how many pointers lead to it."""
    plain = re.sub(r"\[[^\]]*\]", "*", _QUALIFIERS.sub(" ", kind))
    return " ".join(plain.replace("*", " ").split()), plain.count("*")


def _text(node: Node | None) -> str:
    return (node.text or b"").decode("ascii", "replace") if node else ""
