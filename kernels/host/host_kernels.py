"""Resolution of a host launch to its kernel: template arguments and function pointers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..source.signatures import Signature
from ..source.templates import deduced
from ..source_access import plain_name
from .host_instances import base_name, kinds, template_arguments
from .host_values import HostScope

if TYPE_CHECKING:
    from tree_sitter import Node

_DEEP = 8
_LONGEST = 60
_STRAY = re.compile(r"[;{}]|^\w+ \w")
"""What no name of a kernel has."""
_LAST = re.compile(r"(?<![.\w])(?<!->)(?P<name>\w+(?:::\w+)*)\s*(?P<given><[^;{}<>]*>)?\s*$")
_PLAIN = re.compile(r"<(\s*(\d+|bool|char|short|int|long|float|double|true|false)\s*[,>])+")
_NAMES = ("identifier", "template_function", "qualified_identifier")


class Called(NamedTuple):
    """A launch's kernel.

    Attributes:
        name: As C++ names it outside of any function, with ``?`` for what is not known of it.
        params: (type, name) of its parameters.
        lacking: Why it is not known, in words; ``example``: a kernel that may be meant.
    """

    name: str
    params: tuple[tuple[str, str], ...] = ()
    lacking: str = ""
    example: str = ""


def kernel_of(
    node: Node,
    arguments: Sequence[Node] | None,
    scope: HostScope,
    declared: Sequence[Signature],
    before: str = "",
) -> Called:
    """Return the kernel that an expression names; ``arguments``: the launch's, if known.

    ``before``: the text up to ``<<<``, for where a macro or a ``<`` leads the grammar astray.
    """
    written = bare(node)
    node = _followed(written, scope, {one.name for one in declared})
    text = " ".join(scope.text(node).split())
    named = [one for one in declared if one.name == base_name(text)]
    if not named and (called := _in_front(before, text, scope, declared)):
        return called
    if not named and (text in scope.macros or _STRAY.search(text)):
        return Called("?", (), f"{text.split()[-1]} is not read", _example(declared, arguments))
    if not named and (node.type not in _NAMES or text in scope.kinds):
        shown = plain_name(" ".join(scope.text(written).split()))
        shown = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."
        return Called("?", (), f"called through a pointer, {shown}", _example(declared, arguments))
    fitting = [one for one in named if arguments is None or len(one.params) >= len(arguments)]
    named = fitting or named
    templates = [one for one in named if one.template]
    params = named[0].params if named else ()
    if "<" not in text and (not templates or len(templates) < len(named)):
        return Called(text, params)
    given = template_arguments(node, scope)
    types = kinds(arguments or (), scope)
    ways = [deduced(one.parameters, [k for k, _ in one.params], given, types) for one in templates]
    args = ways[0] if ways and ways.count(ways[0]) == len(ways) else given if given else [None]
    if not args:
        return Called(text, params)
    head = text.split("<")[0].strip()
    parameters = templates[0].parameters if templates else ()
    examples = [one.example for one in parameters] + ["32"] * len(args)
    filled = [arg or example for arg, example in zip(args, examples, strict=False)]
    meant = dict(zip((one.name for one in parameters), filled, strict=False))
    params = tuple(
        (re.sub(r"\w+", lambda m: meant.get(m[0], m[0]), kind), name) for kind, name in params
    )
    example = f"{head}<{', '.join(filled)}>"
    if None not in args:
        return Called(example, params)
    unknown = [p.name for p, arg in zip(parameters, args, strict=False) if arg is None and p.name]
    return Called(
        f"{head}<{', '.join(arg or '?' for arg in args)}>",
        params, f"{', '.join(unknown) or 'an argument'} of {head} is not known", example,
    )  # fmt: skip


def _in_front(
    before: str, read: str, scope: HostScope, declared: Sequence[Signature]
) -> Called | None:
    """Return the kernel whose name, or a macro of it, is the last word of a text.

    It is declared, or what was ``read`` has not that word.
    """
    found = _LAST.search(before)
    if not found:
        return None
    name = scope.macros.get(found["name"], found["name"]).strip()
    fitting = [one for one in declared if one.name == base_name(name)]
    if not fitting:
        other = found["name"] not in read and found["name"] not in scope.macros
        return Called(name) if other and not found["given"] else None
    one, given = fitting[0], " ".join((found["given"] or "").split())
    if not one.template or "<" in name or _PLAIN.fullmatch(given):
        return Called(name + given, one.params)
    return Called(
        f"{name}<?>", one.params, f"{given or 'what it stands for'} is not read", one.example
    )


def _example(declared: Sequence[Signature], arguments: Sequence[Node] | None) -> str:
    """Return a kernel that takes as many arguments, if there is one."""
    count = None if arguments is None else len(arguments)
    named = sorted(declared, key=lambda one: len(one.params) != count)[:1]
    return "".join(one.example for one in named)


def _followed(node: Node, scope: HostScope, kernels: set[str]) -> Node:
    """Return the kernel behind a variable, ``auto kernel = tiled<16>;``, or the node itself."""
    at = node
    for _ in range(_DEEP):
        name = base_name(scope.text(at))
        if name in kernels and at.type in _NAMES:
            return at
        value = scope.values.get(name) if at.type == "identifier" else None
        if value is None:
            break
        at = bare(value)
    return node


def bare(node: Node) -> Node:
    """Return an expression without casts, brackets and ``&``."""
    inner: Node | None = node
    while inner is not None:
        node, inner = inner, None
        if node.type == "cast_expression":
            inner = node.child_by_field_name("value")
        elif node.type in ("parenthesized_expression", "pointer_expression"):
            inner = node.named_children[0] if node.named_children else None
        elif node.type == "call_expression" and b"_cast" in (node.text or b"").split(b"<")[0]:
            listed = node.child_by_field_name("arguments")
            inner = listed.named_children[0] if listed and listed.named_children else None
    return node
