"""The kernels that a CUDA source declares: names, and their parameters' names and types."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .preprocessor import VARIANTS, Macros, blank, readable
from .syntax import declared, descendants, parse
from .templates import TemplateParameter, template_parameters

if TYPE_CHECKING:
    from tree_sitter import Node

_GLOBAL = frozenset(["__global__"])
_POINTERS = re.compile(r"(\*\s*)([A-Z_][A-Z0-9_]*)(?=\s+\w+\s*[,)=])")
"""``float* RESTRICT x``, whose macro may be a header's."""
_QUALIFIERS = re.compile(r"\b(?:const|volatile|struct|restrict|__\w+__|__restrict)\b|\s")


@dataclass(frozen=True)
class Signature:
    """A kernel as the source declares it.

    Attributes:
        name: Without namespace; ``template``: whether it takes template arguments.
        params: (type, name) of each parameter, as far as the source says.
        scope: The namespaces that it is in, as C++ writes them, but for those that are inline.
        parameters: Those of the template.
        written: The declaration of each parameter as it stands, macros included.
    """

    name: str
    template: bool
    params: tuple[tuple[str, str], ...]
    scope: str = ""
    parameters: tuple[TemplateParameter, ...] = ()
    written: tuple[str, ...] = ()

    @property
    def full(self) -> str:
        """The name with its namespaces."""
        return f"{self.scope}::{self.name}" if self.scope else self.name

    @property
    def example(self) -> str:
        """The name with template arguments, if it takes some."""
        needed = [one.example for one in self.parameters if not (one.default or one.pack)]
        return f"{self.full}<{', '.join(needed)}>" if self.template else self.full


@functools.lru_cache(maxsize=64)
def signatures(source: str) -> tuple[Signature, ...]:
    """Return the ``__global__`` functions of a source, in order, each once."""
    if "__global__" not in source:
        return ()
    macros = Macros([source], (), _GLOBAL)
    found: dict[tuple[str, bool, tuple[str, ...]], Signature] = {}
    for variant in VARIANTS:
        plain, bare, outside, _ = readable(source, macros, variant)
        for start, body, end in outside:  # macros in it may be no statements to the grammar
            if body < end and not macros.marks.isdisjoint(re.findall(r"\w+", bare[start:body])):
                plain = blank(plain, body + 1, end - 1)
        plain = _POINTERS.sub(lambda m: m[1] + " " * len(m[2]), plain)
        root = parse(plain.encode("ascii", "replace")).root_node
        for read_one in _walk(root, plain, bare, macros.marks, False):
            signature = _spelled_out(read_one, source)
            key = signature.full, signature.template, _bare(k for k, _ in signature.params)
            known = found.setdefault(key, signature)
            if not any(name for _, name in known.params):  # declared before it is defined
                found[key] = signature
    return tuple(found.values())


def kernel_names(source: str, params: bool = False) -> list[str]:
    """Return the ``__global__`` functions a source declares, with namespaces and ``<...>``.

    ``params``: with their parameters' types in brackets.
    """
    names = (
        s.full + "<...>" * s.template + f"({', '.join(kind for kind, _ in s.params)})" * params
        for s in signatures(source)
    )
    return list(dict.fromkeys(names))


def qualified(entry: str, sources: Iterable[str]) -> str:
    """Return an entry of a template, or with types, with all namespaces, if they are left out.

    So it stays where several kernels may be meant. (A plain name is found in the PTX.)
    """
    name, kinds = parted(entry)
    head = name.split("<")[0].strip().removeprefix("::")
    if kinds is None and "<" not in name:
        return entry
    *given, base = head.split("::")
    those = [s for text in sources for s in signatures(text) if s.name == base]
    scopes = {tuple(s.scope.split("::")) if s.scope else () for s in those}
    fitting = [scope for scope in scopes if scope[len(scope) - len(given) :] == tuple(given)]
    if tuple(given) in scopes or len(fitting) != 1:
        return entry
    return "::".join([*fitting[0], base]) + entry.strip().removeprefix("::")[len(head) :]


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
    """Return the signature of a kernel, named as C++ names it.

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
    """Return the names a kernel's parameters have in its CUDA source; empty where not found."""
    found = find(sources, entry, kinds)
    return [name for _, name in found.params] if found else []


def _bare(kinds: Iterable[str]) -> tuple[str, ...]:
    """Return types without qualifiers and spaces, equal in all declarations of a kernel."""
    return tuple(_QUALIFIERS.sub("", kind) for kind in kinds)


def parameter_label(names: Sequence[str], number: int) -> str:
    """Return a name for a parameter (from 0): its own, or its position if a parameter has none.

    C++ does not number parameters; a reader of ``k(float*, S)`` calls ``S`` the second.
    """
    if number >= len(names):
        return f"argument {number}"
    return names[number] or f"parameter {number + 1}"


def _walk(
    node: Node, plain: str, bare: str, marks: set[str], template: bool, scope: str = ""
) -> Iterator[Signature]:
    before = node.start_byte if node.parent else 0  # a tree begins at its first word
    for child in node.children:
        if child.type in ("function_definition", "declaration"):
            declarator = next(_functions(child), None)
            listed = declarator.child_by_field_name("parameters") if declarator else None
            head = bare[before : listed.start_byte] if listed else ""
            if declarator and not marks.isdisjoint(re.findall(r"\w+", head)):
                yield replace(_signature(declarator, plain, bare, template), scope=scope)
        elif child.type == "template_declaration":
            for one in _walk(child, plain, bare, marks, True, scope):
                yield replace(one, parameters=one.parameters or template_parameters(child))
        elif child.type in (
            "namespace_definition", "linkage_specification", "declaration_list", "ERROR",
        ):  # fmt: skip
            inner = _inside(child, scope) if child.type == "namespace_definition" else scope
            yield from _walk(child, plain, bare, marks, template, inner)
        if child.type not in ("template", "template_parameter_list"):
            before = child.end_byte


def _inside(namespace: Node, scope: str) -> str:
    """Return the namespaces inside a namespace's braces; inline and unnamed ones are optional."""
    named = namespace.child_by_field_name("name")
    if named is None or any(child.type == "inline" for child in namespace.children):
        return scope
    name = re.sub(r"\s", "", (named.text or b"").decode("ascii"))
    return f"{scope}::{name}" if scope else name


def _spelled_out(found: Signature, source: str) -> Signature:
    """Return a kernel declared by macros: ``KERNEL(n) { }``, ``__global__ void KERNEL(n)()``."""
    if call := re.fullmatch(r"(\w+)\s*\(\s*((\w+)[^()]*)\)\s*", found.name):
        name = _expanded(call[1], call[2], source)
        return replace(found, name=name if re.fullmatch(r"\w+", name) else call[3])
    text = _expanded(found.name, ",".join(kind for kind, _ in found.params), source)
    made = signatures(text.rstrip("{; ") + ";") if "__global__" in text else ()
    if not made:
        return found
    return replace(found, name=made[0].name, params=made[0].params, written=made[0].written)


def _expanded(macro: str, given: str, source: str) -> str:
    """Return the expansion of a function-like macro; ``""`` if it is none."""
    found = re.search(rf"#\s*define\s+{re.escape(macro)}\(([^()]*)\)((?:\\\r?\n|[^\n])*)", source)
    if not found:
        return ""
    names = [name.strip() for name in found[1].split(",")]
    values = dict(zip(names, (value.strip() for value in given.split(",")), strict=False))
    body = re.sub(r"\\\r?\n", " ", found[2]).strip()
    body = re.sub(r"\b\w+\b", lambda m: values.get(m[0], m[0]), body)
    return re.sub(r"\s*##\s*", "", body)


def _functions(node: Node) -> Iterator[Node]:
    """Return the declarator of the function that a node declares."""
    closed = ("function_declarator", "compound_statement", "parameter_list")
    return (n for n in descendants(node, closed) if n.type == "function_declarator")


def _signature(declarator: Node, plain: str, bare: str, template: bool) -> Signature:
    named = declarator.child_by_field_name("declarator")
    name = plain[named.start_byte : named.end_byte] if named else ""
    macro = re.search(r"\w+\s*\(\s*\w+[^()]*\)\s*$", name)  # KERNEL(name)(parameters)
    listed = declarator.child_by_field_name("parameters")
    params, written = [], []
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
        written.append(" ".join(bare[param.start_byte : end].split()))
    if [kind for kind, _ in params] == ["void"]:
        params, written = [], []
    name = macro[0] if macro else name.split("<")[0].strip().split("::")[-1]
    return Signature(name, template, tuple(params), written=tuple(written))
