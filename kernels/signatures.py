"""The kernels that a CUDA source declares: names, and their parameters' names and types."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .preprocessor import VARIANTS, Macros, readable
from .syntax import declared, descendants, parse

if TYPE_CHECKING:
    from tree_sitter import Node

_GLOBAL = frozenset(["__global__"])


@dataclass(frozen=True)
class Signature:
    """A kernel as the source declares it.

    Attributes:
        name: Without namespace; ``template``: whether it takes template arguments.
        params: (type, name) of each parameter, as far as the source says.
    """

    name: str
    template: bool
    params: tuple[tuple[str, str], ...]


@functools.lru_cache(maxsize=64)
def signatures(source: str) -> tuple[Signature, ...]:
    """The ``__global__`` functions of a source, in order, each once."""
    if "__global__" not in source:
        return ()
    macros = Macros([source], (), _GLOBAL)
    found: dict[tuple[str, bool], Signature] = {}
    for variant in VARIANTS:
        plain, bare, *_ = readable(source, macros, variant)
        root = parse(plain.encode("ascii", "replace")).root_node
        for signature in _walk(root, plain, bare, macros.marks, False):
            known = found.setdefault((signature.name, signature.template), signature)
            if not any(name for _, name in known.params):  # declared before it is defined
                found[known.name, known.template] = signature
    return tuple(found.values())


def kernel_names(source: str) -> list[str]:
    """The ``__global__`` functions a source declares, templates with ``<...>``."""
    return [s.name + ("<...>" if s.template else "") for s in signatures(source)]


def find(sources: Mapping[str, str], entry: str) -> Signature | None:
    """The signature of a kernel, named as C++ names it."""
    name = re.sub(r"<.*", "", entry, flags=re.S).strip().split("::")[-1]
    for source in sources.values():
        for signature in signatures(source):
            if signature.name == name:
                return signature
    return None


def parameter_names(sources: Mapping[str, str], entry: str) -> list[str]:
    """The names a kernel's parameters have in its CUDA source; empty where not found."""
    found = find(sources, entry)
    return [name for _, name in found.params] if found else []


def parameter_label(names: Sequence[str], number: int) -> str:
    """What to call a parameter, from 0 on: its name, or its place if it or no parameter has one.

    C++ counts none of them; who reads ``k(float*, S)`` calls ``S`` the second.
    """
    if number >= len(names):
        return f"argument {number}"
    return names[number] or f"parameter {number + 1}"


def _walk(
    node: Node, plain: str, bare: str, marks: set[str], template: bool
) -> Iterator[Signature]:
    before = node.start_byte if node.parent else 0  # a tree begins at its first word
    for child in node.children:
        if child.type in ("function_definition", "declaration"):
            declarator = next(_functions(child), None)
            listed = declarator.child_by_field_name("parameters") if declarator else None
            head = bare[before : listed.start_byte] if listed else ""
            if declarator and not marks.isdisjoint(re.findall(r"\w+", head)):
                yield _signature(declarator, plain, template)
        elif child.type == "template_declaration":
            yield from _walk(child, plain, bare, marks, True)
        elif child.type in (
            "namespace_definition", "linkage_specification", "declaration_list", "ERROR",
        ):  # fmt: skip
            yield from _walk(child, plain, bare, marks, template)
        if child.type not in ("template", "template_parameter_list"):
            before = child.end_byte


def _functions(node: Node) -> Iterator[Node]:
    """The declarator of the function that a node declares."""
    closed = ("function_declarator", "compound_statement", "parameter_list")
    return (n for n in descendants(node, closed) if n.type == "function_declarator")


def _signature(declarator: Node, plain: str, template: bool) -> Signature:
    named = declarator.child_by_field_name("declarator")
    name = plain[named.start_byte : named.end_byte] if named else ""
    if made := re.search(r"\(\s*(\w+)[^()]*\)\s*$", name):  # KERNEL(name)(parameters)
        name = made[1]
    listed = declarator.child_by_field_name("parameters")
    params = []
    for param in listed.named_children if listed else ():
        if "parameter_declaration" not in param.type:
            continue
        inner, _ = declared(param.child_by_field_name("declarator"))
        value = param.child_by_field_name("default_value")
        end = value.start_byte if value else param.end_byte
        text = plain[param.start_byte : end]
        word = plain[inner.start_byte : inner.end_byte] if inner else ""
        kind = re.sub(rf"\b{word}\b|=\s*$", " ", text) if word else text
        params.append((" ".join(kind.split()), word))
    if [kind for kind, _ in params] == ["void"]:
        params = []
    return Signature(name.split("<")[0].strip().split("::")[-1], template, tuple(params))
