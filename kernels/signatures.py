"""The kernels that a CUDA source declares: names, and their parameters' names and types."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .preprocessor import VARIANTS, Macros, readable
from .syntax import declared, descendants, parse

if TYPE_CHECKING:
    from tree_sitter import Node

_GLOBAL = frozenset(["__global__"])
_QUALIFIERS = re.compile(r"\b(?:const|volatile|struct|restrict|__\w+__|__restrict)\b|\s")


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
    found: dict[tuple[str, bool, tuple[str, ...]], Signature] = {}
    for variant in VARIANTS:
        plain, bare, *_ = readable(source, macros, variant)
        root = parse(plain.encode("ascii", "replace")).root_node
        for signature in _walk(root, plain, bare, macros.marks, False):
            key = signature.name, signature.template, _bare(k for k, _ in signature.params)
            known = found.setdefault(key, signature)
            if not any(name for _, name in known.params):  # declared before it is defined
                found[key] = signature
    return tuple(found.values())


def kernel_names(source: str, params: bool = False) -> list[str]:
    """The ``__global__`` functions a source declares, templates with ``<...>``.

    ``params``: with their parameters' types in brackets.
    """
    names = (
        s.name + "<...>" * s.template + f"({', '.join(kind for kind, _ in s.params)})" * params
        for s in signatures(source)
    )
    return list(dict.fromkeys(names))


def parted(entry: str) -> tuple[str, str | None]:
    """``ns::k<3>(float*, int)`` as its name and what is in the brackets, if it has any."""
    text, depth, at = entry.strip(), 0, 0
    if not text.endswith(")"):
        return text, None
    for at in range(len(text) - 1, -1, -1):
        depth += (text[at] == ")") - (text[at] == "(")
        if depth == 0:
            break
    name = text[:at].rstrip()
    return (name, text[at + 1 : -1]) if re.search(r"[\w>]$", name) else (text, None)


def find(sources: Mapping[str, str], entry: str, kinds: Sequence[str] = ()) -> Signature | None:
    """The signature of a kernel, named as C++ names it.

    ``kinds``: its parameters' types, where they are known: of overloads, the most like it.
    """
    name = re.sub(r"<.*", "", parted(entry)[0], flags=re.S).split("::")[-1].strip()
    wanted = _bare(kinds)

    def likeness(signature: Signature) -> tuple[bool, int, bool]:
        own = _bare(kind for kind, _ in signature.params)
        same = sum(a == b for a, b in zip(own, wanted, strict=False))
        return len(own) == len(wanted), same, any(name for _, name in signature.params)

    for source in sources.values():
        if found := [one for one in signatures(source) if one.name == name]:
            return max(found, key=likeness)
    return None


def parameter_names(sources: Mapping[str, str], entry: str, kinds: Sequence[str] = ()) -> list[str]:
    """The names a kernel's parameters have in its CUDA source; empty where not found."""
    found = find(sources, entry, kinds)
    return [name for _, name in found.params] if found else []


def _bare(kinds: Iterable[str]) -> tuple[str, ...]:
    """Types without qualifiers and spaces: what declarations of one kernel have in common."""
    return tuple(_QUALIFIERS.sub("", kind) for kind in kinds)


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
