"""The launches in a program's host code: ``k<<<grid, block, shared>>>(args)``, as far as it says.

Nothing of the host's is run. Constants, ``dim3`` variables and the sizes given to ``cudaMalloc``
are folded where a name has one value in its function; all else is unknown.

Longer: names, numbers and shapes mean each other, in one scope.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .element_types import spelled
from .host_words import element_word
from .preprocessor import Macros
from .ptx.types import TYPE_SIZES
from .structures import SCALARS
from .syntax import declared, descendants, parse

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
_MOST = 1 << _BITS
_DEEP, _NODES = 8, 150


@dataclass(frozen=True)
class HostLaunch:
    """One launch; what is not known is ``None``.

    Attributes:
        line: Of the source, from 1.
        kernel: As the launch names it: ``tiled<16>``.
        grid: Blocks, x first; ``block``: threads of a block.
        shared_bytes: Dynamic shared memory.
        args: Words for ``tilescope run``: ``f32[1024]``, ``64``.
    """

    line: int
    kernel: str
    grid: tuple[int, ...] | None
    block: tuple[int, ...] | None
    shared_bytes: int | None
    args: tuple[str | None, ...]

    @property
    def known(self) -> bool:
        """Whether all of it is."""
        return None not in (self.grid, self.block, self.shared_bytes, *self.args)

    def words(self, file: str) -> list[str]:
        """The command line that makes it, ``?`` for what is not known."""
        shapes = [
            "?" if shape is None else ",".join(map(str, shape)) for shape in (self.grid, self.block)
        ]
        words = [file, self.kernel, "--grid", shapes[0], "--block", shapes[1]]
        if self.shared_bytes != 0:
            words += ["--shared", "?" if self.shared_bytes is None else str(self.shared_bytes)]
        return [*words, *("?" if arg is None else arg for arg in self.args)]


def host_launches(source: str, headers: str = "", options: Sequence[str] = ()) -> list[HostLaunch]:
    """The launches of a source text, in its order.

    ``headers``: what it includes of the user's own, and ``options``, NVRTC's, say what names mean.
    """
    if "<<<" not in source:
        return []
    whole = f"{headers}\n{source}"
    text, begin = whole.encode("ascii", "replace"), len(headers) + 1
    said = Macros([whole], (), frozenset()) | Macros([], options, frozenset())
    macros = {name: macro.body for name, macro in said.items() if not macro.call}
    root = parse(text).root_node
    shared = _Scope(text, macros, {"": whole}, first=headers.count("\n") + 1)
    for child in root.children:
        if child.type in ("declaration", "enum_specifier"):
            shared.learn(child)
    found = []
    scope, end = shared, 0
    for node in descendants(root):
        if node.start_byte >= end:
            scope = shared
        if node.type == "function_definition":
            scope, end = shared.inside(), node.end_byte
            scope.learn(node)
        called = next((c for c in node.children if c.type == "kernel_call_syntax"), None)
        if called is not None and node.start_byte >= begin:
            found.append(_launch(node, called, scope))
    return found


def _launch(call: Node, called: Node, scope: _Scope) -> HostLaunch:
    named = call.child_by_field_name("function")
    listed = call.child_by_field_name("arguments")
    given = called.named_children
    shape = [scope.shape(given[i]) if i < len(given) else None for i in (0, 1)]
    shared = scope.value(given[2]) if len(given) > 2 else 0
    return HostLaunch(
        call.start_point[0] + 1 - scope.first,
        scope.text(named) if named else "?",
        shape[0], shape[1],
        shared if isinstance(shared, int) else None,
        tuple(scope.word(arg) for arg in (listed.named_children if listed else ())),
    )  # fmt: skip


@dataclass
class _Scope:
    """What names stand for in a function; a name with two values stands for none.

    ``first``: the row of the text on which the file begins whose launches are asked for.
    """

    source: bytes
    macros: dict[str, str]
    sources: dict[str, str]
    values: dict[str, Node | None] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, Node | None] = field(default_factory=dict)
    busy: set[str] = field(default_factory=set)
    work: list[int] = field(default_factory=lambda: [0])
    first: int = 0

    def inside(self) -> _Scope:
        """A function's scope."""
        return _Scope(
            self.source, self.macros, self.sources, dict(self.values), dict(self.kinds),
            dict(self.sizes), first=self.first,
        )  # fmt: skip

    def text(self, node: Node) -> str:
        """A node's text."""
        return self.source[node.start_byte : node.end_byte].decode("ascii")

    def learn(self, whole: Node) -> None:
        """Note declarations, assignments and allocations, wherever they stand."""
        for node in (whole, *descendants(whole)):
            if node.type in ("declaration", "parameter_declaration"):
                self._declared(node)
            elif node.type == "assignment_expression":
                left, right = (node.child_by_field_name(n) for n in ("left", "right"))
                plain = any(child.type == "=" for child in node.children)
                self._set(self.text(left) if left else "", right if plain else None)
            elif node.type == "update_expression":
                argument = node.child_by_field_name("argument")
                self._set(self.text(argument) if argument else "", None)
            elif node.type == "call_expression":
                self._called(node)
            elif node.type == "enumerator":
                named, value = (node.child_by_field_name(n) for n in ("name", "value"))
                self._set(self.text(named) if named else "", value)

    def _declared(self, node: Node) -> None:
        typed = node.child_by_field_name("type")
        for declarator in node.children_by_field_name("declarator"):
            inner, around = declared(declarator)
            given = [d.child_by_field_name("value") for d in around if d.type == "init_declarator"]
            value = given[0] if given else None
            if value is None and typed is not None and self.text(typed) == "dim3":
                # dim3 block(TILE, TILE); is a function's declaration to a grammar without types.
                value = next((d.child_by_field_name("parameters") for d in around
                              if d.type == "function_declarator"), None)  # fmt: skip
            stars = sum(d.type in ("pointer_declarator", "reference_declarator") for d in around)
            if inner is None or typed is None:
                continue
            name = self.text(inner)
            if node.type == "parameter_declaration":
                self.values[name] = None
            elif value is not None or name in self.values:
                self._set(name, value)
            self.kinds[name] = self.text(typed) + "*" * stars

    def _set(self, name: str, value: Node | None) -> None:
        if name.isidentifier():
            self.values[name] = None if name in self.values else value

    def _called(self, node: Node) -> None:
        named, listed = (node.child_by_field_name(n) for n in ("function", "arguments"))
        arguments = listed.named_children if listed else []
        name = self.text(named).split("<")[0] if named else ""
        if name in _ALLOCATING and len(arguments) > 1:
            pointer = re.search(r"&\s*(\w+)$", self.text(arguments[0]))
            if pointer:
                key = pointer[1]
                self.sizes[key] = None if key in self.sizes else arguments[1]
            return
        for argument in arguments:
            if argument.type == "pointer_expression" and self.text(argument).startswith("&"):
                self._set(self.text(argument)[1:].strip(), None)

    def value(self, node: Node | None) -> Number | None:
        """An expression's value, if it is short: names may stand for as much as they like."""
        self.work[0] = _NODES
        return self._value(node)

    def _value(self, node: Node | None) -> Number | None:
        self.work[0] -= 1
        if node is None or self.work[0] < 0:
            return None
        text = self.text(node)
        if node.type == "number_literal":
            return _literal(text)
        if node.type == "identifier":
            return self._named(text)
        if node.type == "parenthesized_expression":
            return self._value(node.named_children[0])
        if node.type == "call_expression":  # int(n)
            named, listed = (node.child_by_field_name(n) for n in ("function", "arguments"))
            kind = spelled(self.text(named), self.sources) if named else ""
            one = listed.named_children if listed else []
            inside = self._value(one[0]) if kind in SCALARS and len(one) == 1 else None
            whole = inside is not None and SCALARS[kind][0] in "su"
            return int(inside) if whole and inside is not None else inside
        if node.type == "cast_expression":
            return self._value(node.child_by_field_name("value"))
        if node.type == "sizeof_expression":
            typed = node.child_by_field_name("type") or node.child_by_field_name("value")
            return self._bytes(self._measured(typed)) if typed else None
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
            return result if abs(result) < _MOST else None
        return None

    def _named(self, name: str) -> Number | None:
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

    def _macro(self, body: str) -> Number | None:
        text = f"auto x = {body};".encode("ascii", "replace")
        tree = parse(text)
        if tree.root_node.has_error:  # none, or what it is depends on a condition
            return None
        first = next(iter(tree.root_node.children), None)
        declarator = first.child_by_field_name("declarator") if first else None
        inner = _Scope(text, self.macros, self.sources, busy=self.busy, work=self.work)
        return inner._value(declarator.child_by_field_name("value") if declarator else None)

    def shape(self, node: Node, depth: int = 0) -> tuple[int, ...] | None:
        """A grid or block: a number, a ``dim3``, or a variable of that type."""
        if node.type == "identifier":
            value = self.values.get(self.text(node))
            if value is not None and depth < _DEEP:
                return self.shape(value, depth + 1)
        if node.type == "compound_literal_expression":
            typed, listed = (node.child_by_field_name(n) for n in ("type", "value"))
            is_dim3 = typed is not None and self.text(typed) == "dim3"
            return self.shape(listed) if is_dim3 and listed is not None else None
        parts: list[Number | None]
        if node.type == "parameter_list":
            parts = [self._named(self.text(n)) for n in node.named_children]
        elif node.type in ("argument_list", "initializer_list"):
            parts = [self.value(n) for n in node.named_children]
        elif node.type == "call_expression":
            listed = node.child_by_field_name("arguments")
            named = node.child_by_field_name("function")
            if listed is None or named is None or self.text(named) != "dim3":
                return None
            return self.shape(listed)
        else:
            parts = [self.value(node)]
        numbers = [n for n in parts if isinstance(n, int) and n > 0]
        return tuple(numbers) if 0 < len(numbers) == len(parts) <= 3 else None

    def word(self, node: Node) -> str | None:
        """An argument as ``tilescope run`` takes it."""
        name = self.text(node)
        kind = spelled(self.kinds.get(name, ""), self.sources) if node.type == "identifier" else ""
        if kind.endswith("*"):
            size = self.value(self.sizes.get(name))
            element = element_word(kind[:-1].strip())
            wide = int(element[1:]) // 8 if element else 0
            if not isinstance(size, int) or not wide or size % wide or size <= 0:
                return None
            return f"{element}[{size // wide}]"
        value = self.value(node)
        return None if value is None else repr(value)

    def _measured(self, node: Node) -> str:
        """The type of what ``sizeof`` stands before: a type's name, or ``*pointer``."""
        while node.type == "parenthesized_expression" and node.named_children:
            node = node.named_children[0]
        text = self.text(node)
        if node.type == "pointer_expression" and text.startswith("*"):
            kind = self.kinds.get(text[1:].strip(), "")
            return kind[:-1].strip() if kind.endswith("*") else ""
        return "" if text in self.kinds else text

    def _bytes(self, kind: str) -> int | None:
        plain = spelled(kind, self.sources)
        return 8 if plain.endswith("*") else TYPE_SIZES.get(SCALARS.get(plain, ""))


def _literal(text: str) -> Number | None:
    plain = text.replace("'", "")
    whole = re.fullmatch(r"(-?)(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)[uUlLzZ]*", plain)
    if whole:
        digits = whole[2]
        value = int(digits, 8) if re.fullmatch(r"0[0-7]+", digits) else int(digits, 0)
        return -value if whole[1] else value
    try:
        return float(plain.rstrip("fFlL"))
    except ValueError:
        return None
