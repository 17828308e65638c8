"""Evaluation of names, numbers and shapes in a program's host code."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..source.element_types import spelled, vector_of
from ..source.structures import SCALARS, layout_of
from ..source.syntax import declared, descendants, parse
from .host_arguments import element_word
from .host_functions import Declared

if TYPE_CHECKING:
    from tree_sitter import Node

Number = int | float
_ALLOCATING = ("cudaMalloc", "cudaMallocManaged", "cudaMallocAsync", "cudaHostAlloc")
_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "<<": lambda a, b: a << min(b, _BITS), ">>": lambda a, b: a >> b, "&": lambda a, b: a & b,
    "|": lambda a, b: a | b, "%": lambda a, b: a % b,
    "/": lambda a, b: a // b if isinstance(a, int) and isinstance(b, int) else a / b,
}  # fmt: skip
_BITS = 62
_MAX_VALUE = 1 << _BITS
_DEEP, _NODES = 8, 150
_VECTORS = re.compile(r"dim3|u?int[234]")
_AXES = "xyz"
_LOOKING = ("size", "data", "begin", "end", "cbegin", "cend", "at", "front", "back", "empty")
"""Methods of a ``std::vector`` that leave its size as it is."""


_ARRAY = re.compile(r"[\s(]*(\w+)((?:\s*\[[^\[\]]*\])*)[\s)]*")
"""An array or an element of it, as ``sizeof`` takes it."""


@dataclass
class HostScope:
    """Values of names in a function; a name with two values has none.

    Attributes:
        numbers: Values of a function's parameters in a call.
        outer: The file's scope.
        bound: Values of template parameters and type names; ``None`` if unknown.
        extents: Extents of arrays; ``None`` of a name that is declared again.
    """

    source: bytes
    macros: dict[str, str]
    sources: dict[str, str]
    known: Declared = field(default_factory=Declared)
    values: dict[str, Node | None] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, Node | None] = field(default_factory=dict)
    extents: dict[str, list[Node | None] | None] = field(default_factory=dict)
    busy: set[str] = field(default_factory=set)
    work: list[int] = field(default_factory=lambda: [0])
    numbers: dict[str, Number] = field(default_factory=dict)
    outer: HostScope | None = None
    bound: dict[str, str | None] = field(default_factory=dict)

    def inside(self, bound: dict[str, str | None]) -> HostScope:
        """Return a function's scope; ``bound``: what the parameters of its templates stand for."""
        values = {name: node for name, node in self.values.items() if name not in bound}
        numbers = {name: _literal(text) for name, text in bound.items() if text}
        return HostScope(
            self.source, self.macros, self.sources, self.known, values,
            dict(self.kinds), dict(self.sizes), dict(self.extents), outer=self, bound=dict(bound),
            numbers={name: number for name, number in numbers.items() if number is not None},
        )  # fmt: skip

    def meant(self, kind: str) -> str:
        """Return a type, with what it is made of."""
        return re.sub(r"[A-Za-z_]\w*", lambda m: self.bound.get(m[0]) or m[0], kind)

    def text(self, node: Node) -> str:
        """Return a node's text."""
        return self.source[node.start_byte : node.end_byte].decode("ascii")

    def learn(self, whole: Node) -> None:
        """Note declarations, assignments and allocations, wherever they stand."""
        for node in (whole, *descendants(whole)):
            if node.type in ("declaration", "parameter_declaration"):
                self._declared(node)
            elif node.type == "assignment_expression":
                target, right = (node.child_by_field_name(n) for n in ("left", "right"))
                plain = any(child.type == "=" for child in node.children)
                self._set(self.text(target) if target else "", right if plain else None)
            elif node.type == "update_expression":
                argument = node.child_by_field_name("argument")
                self._set(self.text(argument) if argument else "", None)
            elif node.type == "call_expression":
                self._called(node)
            elif node.type == "enumerator":
                named, value = (node.child_by_field_name(n) for n in ("name", "value"))
                self._set(self.text(named) if named else "", value)
            elif node.type in ("alias_declaration", "type_definition"):
                named = node.child_by_field_name("name") or node.child_by_field_name("declarator")
                typed = node.child_by_field_name("type")
                if named and typed and named.type == "type_identifier":
                    self.bound[self.text(named)] = self.meant(self.text(typed))

    def _declared(self, node: Node) -> None:
        typed = node.child_by_field_name("type")
        for declarator in node.children_by_field_name("declarator"):
            inner, around = declared(declarator)
            given = [d.child_by_field_name("value") for d in around if d.type == "init_declarator"]
            value = given[0] if given else None
            made = typed is not None and (
                self.text(typed) == "dim3" or "vector<" in self.text(typed)
            )
            if value is None and made:
                # dim3 block(TILE, TILE); is a function's declaration to a grammar without types.
                value = next((d.child_by_field_name("parameters") for d in around
                              if d.type == "function_declarator"), None)  # fmt: skip
            stars = sum(d.type in ("pointer_declarator", "reference_declarator") for d in around)
            if inner is None or typed is None:
                continue
            name = self.text(inner)
            if node.type == "parameter_declaration":
                if self.text(typed) in self.values or self.text(typed) in self.macros:
                    return  # a product: std::vector<float> h(rows * columns)
                self.values[name] = None
            elif value is not None or name in self.values:
                self._set(name, value)
            self.kinds[name] = self.meant(self.text(typed)) + "*" * stars
            arrays = [
                d.child_by_field_name("size") for d in around if d.type == "array_declarator"
            ][::-1]  # the last extent is the outermost node
            is_array = arrays and not stars and node.type == "declaration"
            self.extents[name] = arrays if is_array and name not in self.extents else None

    def _set(self, name: str, value: Node | None) -> None:
        null = value is not None and self.text(value) in ("nullptr", "NULL", "0")
        if name in self.sizes and not null:  # it points elsewhere from here on
            self.sizes[name] = None
        if name.isidentifier():
            self.values[name] = None if name in self.values else value
        elif member := re.match(r"(\w+)\s*(\.|->|\[)", name):
            is_element = member[2] == "[" and "vector<" in self.kinds.get(member[1], "")
            if not is_element:  # a vector stays as long as it is
                self.values[member[1]] = None

    def _called(self, node: Node) -> None:
        named, listed = (node.child_by_field_name(n) for n in ("function", "arguments"))
        arguments = listed.named_children if listed else []
        name = self.text(named).split("<")[0] if named else ""
        if name.endswith("_cast"):  # reinterpret_cast<void **>(&d)
            return
        if named and named.type == "field_expression":
            of, method = self._member(named)
            if method not in _LOOKING:  # push_back, resize
                self._set(of, None)
        if name in _ALLOCATING and len(arguments) > 1:
            pointer = re.search(r"&\s*\(?\s*(\w+(?:\.\w+)?)\W*$", self.text(arguments[0]))
            if pointer:
                key = pointer[1]
                self.sizes[key] = None if key in self.sizes else arguments[1]
            return
        for argument in arguments:
            if argument.type == "pointer_expression" and self.text(argument).startswith("&"):
                self._set(self.text(argument)[1:].strip(), None)
            elif "vector<" in self.kinds.get(self.text(argument), ""):  # perhaps by reference
                self._set(self.text(argument), None)

    def value(self, node: Node | None) -> Number | None:
        """Return an expression's value, unless its expansion is too long."""
        self.work[0] = _NODES
        return self._value(node)

    def _value(self, node: Node | None) -> Number | None:
        self.work[0] -= 1
        if node is None or self.work[0] < 0:
            return None
        text = self.text(node)
        if node.type == "number_literal":
            return _literal(text)
        if node.type in ("identifier", "type_descriptor"):
            return self._named(text)
        if node.type == "field_expression":
            return self._part(*self._member(node))
        if node.type == "parenthesized_expression":
            return self._value(node.named_children[0])
        if node.type == "call_expression":  # int(n)
            named, listed = (node.child_by_field_name(n) for n in ("function", "arguments"))
            kind = spelled(self.text(named), self.sources) if named else ""
            one = listed.named_children if listed else []
            if kind not in SCALARS:
                return self._result(node)
            inside = self._value(one[0]) if len(one) == 1 else None
            whole = inside is not None and SCALARS[kind][0] in "su"
            return int(inside) if whole and inside is not None else inside
        if node.type == "cast_expression":
            return self._value(node.child_by_field_name("value"))
        if node.type == "sizeof_expression":
            typed = node.child_by_field_name("type") or node.child_by_field_name("value")
            return self._size_of(typed) if typed else None
        if node.type == "unary_expression" and text.startswith("-"):
            inner = self._value(node.child_by_field_name("argument"))
            return None if inner is None else -inner
        if node.type == "binary_expression":
            sides = [self._value(node.child_by_field_name(n)) for n in ("left", "right")]
            made = _OPERATIONS.get(self.text(node.children[1]))
            if made is None or sides[0] is None or sides[1] is None:
                return None
            try:
                result: Number = made(*sides)
            except (ArithmeticError, TypeError, ValueError):
                return None
            return result if abs(result) < _MAX_VALUE else None
        return None

    def _member(self, node: Node) -> tuple[str, str]:
        """Return the variable and the field of ``block.x``; empty for anything else."""
        of, name = (node.child_by_field_name(n) for n in ("argument", "field"))
        plain = of is not None and of.type == "identifier" and b"->" not in (node.text or b"")
        return (self.text(of), self.text(name)) if of and name and plain else ("", "")

    def _part(self, of: str, name: str) -> Number | None:
        """``block.x`` of a ``dim3`` or an ``int2`` that is known."""
        value, kind = self.values.get(of), self.kinds.get(of, "")
        found = _VECTORS.fullmatch(kind)
        if value is None or of in self.busy or name not in _AXES or not (found or kind == "auto"):
            return None
        self.busy.add(of)
        try:
            parts = self._parts(value)
        finally:
            self.busy.discard(of)
        if parts is None or any(one is None for one in parts):
            return None
        filled = [*parts, *[1] * (3 - len(parts))] if kind in ("dim3", "auto") else parts
        return filled[_AXES.index(name)] if _AXES.index(name) < len(filled) else None

    def _result(self, call: Node) -> Number | None:
        """Return the value of a call: of a single-expression function, or a vector's size."""
        named, listed = (call.child_by_field_name(n) for n in ("function", "arguments"))
        if named is None or listed is None:
            return None
        if named.type == "field_expression":
            of, method = self._member(named)
            return self._length(of) if method == "size" else None
        function = self.known.functions.get(self.text(named).split("::")[-1].split("<")[0])
        given = [self._value(arg) for arg in listed.named_children]
        if function is None or len(given) != len(function.params):
            return None
        numbers = {}
        for (kind, name), number in zip(function.params, given, strict=True):
            if number is None:
                return None
            numbers[name] = self._as(kind, number)
        outer = self.outer or self
        inner = replace(outer, numbers=numbers, busy=set(), work=self.work)
        found = inner._value(function.result)
        return None if found is None else self._as(function.kind, found)

    def _as(self, kind: str, number: Number) -> Number:
        """Return a number as a type has it; as it is of one that is not C++'s own."""
        ptx = SCALARS.get(spelled(kind, self.sources), " ")
        if ptx[0] in "su":
            return int(number)
        return float(number) if ptx[0] == "f" else number

    def _length(self, name: str) -> Number | None:
        """Return the length of a ``std::vector``, if nothing changes it."""
        value = self.values.get(name)
        if value is None or "vector<" not in self.kinds.get(name, "") or name in self.busy:
            return None
        parts = value.named_children
        if value.type == "initializer_list":
            return len(parts)
        self.busy.add(name)
        try:
            if value.type == "parameter_list" and len(parts) == 1:
                return self._parameter(parts[0])
            return self._value(parts[0]) if value.type == "argument_list" and parts else None
        finally:
            self.busy.discard(name)

    def _named(self, name: str) -> Number | None:
        if name in self.numbers:
            return self.numbers[name]
        if name in self.busy:
            return None
        self.busy.add(name)
        try:
            if name in self.values:
                return self._value(self.values[name])
            if name in self.macros:
                return self._macro(self.macros[name])
        finally:
            self.busy.discard(name)
        return None

    def _parameter(self, node: Node) -> Number | None:
        """Return the value of an argument that the grammar takes for a parameter's declaration."""
        text = self.text(node)
        named = {name: self._named(name) for name in re.findall(r"[A-Za-z_]\w*", text)}
        return self._macro(text, {name: n for name, n in named.items() if n is not None})

    def _macro(self, body: str, numbers: dict[str, Number] | None = None) -> Number | None:
        text = f"auto x = {body};".encode("ascii", "replace")
        tree = parse(text)
        if tree.root_node.has_error:  # none, or what it is depends on a condition
            return None
        first = next(iter(tree.root_node.children), None)
        declarator = first.child_by_field_name("declarator") if first else None
        inner = HostScope(
            text, self.macros, self.sources, busy=self.busy, work=self.work, numbers=numbers or {}
        )
        return inner._value(declarator.child_by_field_name("value") if declarator else None)

    def shape(self, node: Node) -> tuple[int, ...] | None:
        """Return a grid or block: a number, a ``dim3``, or a variable of that type."""
        self.work[0] = _NODES
        parts = self._parts(node) or []
        numbers = [n for n in parts if isinstance(n, int) and n > 0]
        return tuple(numbers) if 0 < len(numbers) == len(parts) <= 3 else None

    def _parts(self, node: Node, depth: int = 0) -> list[Number | None] | None:
        """Return the components of a ``dim3`` or an ``int2``; ``None`` for another expression."""
        if node.type == "identifier":
            value = self.values.get(self.text(node))
            if value is not None and depth < _DEEP:
                return self._parts(value, depth + 1)
        if node.start_byte in self.known.braced:
            inside = node.named_children[0] if node.named_children else node
            return [self._value(n) for n in _listed(inside)]
        if node.type == "compound_literal_expression":
            typed, listed = (node.child_by_field_name(n) for n in ("type", "value"))
            made = typed is not None and _VECTORS.fullmatch(self.text(typed))
            return self._parts(listed, depth) if made and listed is not None else None
        if node.type == "parameter_list":
            return [self._parameter(n) for n in node.named_children]
        if node.type in ("argument_list", "initializer_list"):
            return [self._value(n) for n in node.named_children]
        if node.type == "call_expression":
            listed = node.child_by_field_name("arguments")
            named = node.child_by_field_name("function")
            name = self.text(named).removeprefix("make_") if named else ""
            if listed is not None and _VECTORS.fullmatch(name):
                return self._parts(listed, depth)
        return [self._value(node)]

    def kind(self, node: Node) -> str:
        """Return the type of a variable, or of a structure's field; ``""`` for anything else."""
        if node.type == "identifier":
            return spelled(self.kinds.get(self.text(node), ""), self.sources)
        if node.type != "field_expression":
            return ""
        of, name = self._member(node)
        fields = self.known.fields.get(self.kinds.get(of, "").removeprefix("struct ")) or {}
        return spelled(fields.get(name, ""), self.sources)

    def word(self, node: Node) -> str | None:
        """Return an argument as ``tilescope run`` takes it."""
        kind = self.kind(node)
        if kind.endswith("*"):
            named = ".".join(self._member(node)) if node.named_children else self.text(node)
            size = self.value(self.sizes.get(named))
            scalar, lanes = vector_of(kind[:-1].strip())
            element = element_word(scalar)
            if not element and layout_of(scalar, self.sources):
                element = "u8"  # a structure's bytes
            wide = int(element[1:]) // 8 if element else 0
            if not isinstance(size, int) or not wide or size % (wide * lanes) or size <= 0:
                return None
            return f"{element}[{size // wide}]"
        value = self.value(node)
        return None if value is None else repr(value)

    def _size_of(self, node: Node) -> Number | None:
        """Return the bytes of a type, what a pointer points to, an array, or its element."""
        found = _ARRAY.fullmatch(self.text(node))
        extents = self.extents.get(found[1]) if found else None
        if not found or not extents:
            return self._bytes(self._measured(node))
        extents = extents[found[2].count("[") :]
        sizes = [self._bytes(self.kinds[found[1]]), *map(self.value, extents)]
        known = [size for size in sizes if isinstance(size, int)]
        return math.prod(known) if len(known) == len(sizes) else None

    def _measured(self, node: Node) -> str:
        """Return the type of what ``sizeof`` stands before: a type's name, or ``*pointer``."""
        while node.type == "parenthesized_expression" and node.named_children:
            node = node.named_children[0]
        text = self.text(node)
        if node.type == "pointer_expression" and text.startswith("*"):
            kind = self.kinds.get(text[1:].strip(), "")
            return kind[:-1].strip() if kind.endswith("*") else ""
        return "" if text in self.kinds else self.meant(text)

    def _bytes(self, kind: str) -> int | None:
        layout = layout_of(kind, self.sources) if kind else None
        return layout.nbytes if layout else None


def _listed(node: Node) -> list[Node]:
    """Return the expressions that commas part, which nest to the right."""
    found = []
    while node.type == "comma_expression":
        first, right = node.named_children[0], node.named_children[-1]
        found.append(first)
        node = right
    return [*found, node]


def _literal(text: str) -> Number | None:
    plain = text.replace("'", "")
    whole = re.fullmatch(r"(-?)(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)[uUlLzZ]*", plain)
    if whole:
        digits = whole[2]
        value = int(digits, 8) if re.fullmatch(r"0[0-7]+", digits) else int(digits, 0)
        return -value if whole[1] else value
    found = re.fullmatch(r"-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFlL]?", plain)
    number = float(plain.rstrip("fFlL")) if found else math.inf
    return number if math.isfinite(number) else None
