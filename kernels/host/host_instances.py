"""A program's functions and calls, and what the calls say of the templates among the functions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..source.syntax import declared, descendants
from ..source.templates import TemplateParameter, deduced, template_parameters
from .host_functions import LAUNCHING
from .host_values import HostScope

if TYPE_CHECKING:
    from tree_sitter import Node

Bound = dict[str, str | None]
_MAX_INSTANCES, _SCOPES, _DEEP = 16, 400, 20
"""Instances of a function, functions that are looked into for them, and calls from main to one."""


@dataclass(frozen=True)
class FunctionDefinition:
    """A function's definition.

    Attributes:
        outer: The parameters of the templates around it, such as its class.
    """

    node: Node
    parameters: tuple[TemplateParameter, ...]
    outer: tuple[TemplateParameter, ...]


@dataclass(frozen=True)
class Use:
    """A launch, a call or an explicit instantiation in the source.

    Attributes:
        within: Number of the containing function; -1: none.
    """

    node: Node
    within: int


@dataclass
class HostProgram:
    """A text as its functions.

    Attributes:
        launches: ``k<<<...>>>(...)``, and calls of functions that launch kernels.
        instances: Those of each function that were asked for; ``depth``: of calls, at the moment.
    """

    shared: HostScope
    functions: list[FunctionDefinition] = field(default_factory=list)
    launches: list[Use] = field(default_factory=list)
    calls: dict[str, list[Use]] = field(default_factory=dict)
    instances: dict[int, list[Bound]] = field(default_factory=dict)
    scopes: dict[tuple[int, tuple[tuple[str, str | None], ...]], HostScope] = field(
        default_factory=dict
    )
    depth: int = 0

    def read(self, root: Node) -> None:
        """Note what stands in a tree."""
        within, end = -1, 0
        templates: list[Node] = []
        for node in descendants(root):
            while templates and node.start_byte >= templates[-1].end_byte:
                templates.pop()
            if node.start_byte >= end:
                within = -1
            if node.type == "template_declaration":
                templates.append(node)
            elif node.type == "function_definition":
                listed = [template_parameters(one) for one in templates]
                own = bool(templates) and node in templates[-1].children
                outer = listed[:-1] if own else listed
                self.functions.append(
                    FunctionDefinition(
                        node, listed[-1] if own else (), tuple(p for ps in outer for p in ps)
                    )
                )
                within, end = len(self.functions) - 1, node.end_byte
            elif node.type in ("call_expression", "template_instantiation"):
                named = _callee(node)
                use = Use(node, within)
                if any(child.type == "kernel_call_syntax" for child in node.children):
                    self.launches.append(use)
                elif named is not None:
                    name = base_name(self.shared.text(named))
                    self.calls.setdefault(name, []).append(use)
                    if LAUNCHING.fullmatch(name):
                        self.launches.append(use)

    def scopes_of(self, use: Use) -> Iterator[tuple[Bound, HostScope]]:
        """Yield the bindings of names at a use, for each instance of its function."""
        if use.within < 0:
            yield {}, self.shared
            return
        for bound in self._instances(use.within):
            yield bound, self._scope(use.within, bound)

    def _scope(self, number: int, bound: Bound) -> HostScope:
        key = number, tuple(bound.items())
        if key not in self.scopes:
            self.scopes[key] = self.shared.inside(bound)
            self.scopes[key].learn(self.functions[number].node)
        return self.scopes[key]

    def _instances(self, number: int) -> list[Bound]:
        """Return the template arguments of a function's calls; unknown without calls."""
        function = self.functions[number]
        unknown: Bound = {one.name: None for one in (*function.outer, *function.parameters)}
        if number not in self.instances and self.depth < _DEEP:
            self.instances[number] = [unknown]  # of one that calls itself
            self.depth += 1
            found: list[Bound] = []
            for bound in self._called(function) if function.parameters else ():
                if bound not in found and len(found) < _MAX_INSTANCES:
                    found.append(unknown | bound)
            self.depth -= 1
            self.instances[number] = found or [unknown]
        return self.instances.get(number, [unknown])

    def _called(self, function: FunctionDefinition) -> Iterator[Bound]:
        named, around = declared(function.node.child_by_field_name("declarator"))
        name = base_name(self.shared.text(named)) if named else ""
        listed = next((d.child_by_field_name("parameters") for d in around
                       if d.type == "function_declarator"), None)  # fmt: skip
        params = [
            self.shared.text(p).rsplit(self.shared.text(inner), 1)[0]
            for p in (listed.named_children if listed else ())
            if (inner := declared(p.child_by_field_name("declarator"))[0])
        ]
        for use in self.calls.get(name, ()):
            if len(self.scopes) > _SCOPES:
                return
            for _, scope in self.scopes_of(use):
                named = _callee(use.node)
                arguments = use.node.child_by_field_name("arguments")
                args = deduced(
                    function.parameters, params,
                    template_arguments(named, scope) if named else (),
                    kinds(arguments.named_children if arguments else (), scope),
                )  # fmt: skip
                bound = dict(zip((one.name for one in function.parameters), args, strict=False))
                for one in function.parameters[len(args) :]:
                    bound[one.name] = one.default or None
                if None not in bound.values():
                    yield bound


def _callee(node: Node) -> Node | None:
    """Return the name in a call or explicit instantiation."""
    if node.type == "call_expression":
        return node.child_by_field_name("function")
    return declared_function(node.child_by_field_name("declarator"))


def declared_function(declarator: Node | None) -> Node | None:
    """Return the name in the declarator of a function, with its template arguments."""
    while declarator is not None and declarator.type.endswith("declarator"):
        declarator = declarator.child_by_field_name("declarator")
    return declarator


def base_name(text: str) -> str:
    """Return a name without namespaces, objects and template arguments."""
    return re.split(r"::|->|\.", text.split("<")[0])[-1].strip()


def kinds(arguments: Sequence[Node], scope: HostScope) -> list[str]:
    """Return the types of a call's arguments, ``""`` where they are not plain to see."""
    found = [_kind(node, scope) for node in arguments]
    return [kind if known_words(kind, scope.bound) else "" for kind in found]


def known_words(text: str, bound: Mapping[str, str | None]) -> bool:
    """Whether nothing in a text is a template's parameter of which nothing is known."""
    return all(bound.get(word, "") is not None for word in re.findall(r"[A-Za-z_]\w*", text))


def _kind(node: Node, scope: HostScope) -> str:
    text = scope.text(node)
    if node.type == "number_literal":
        return _of_literal(text)
    if node.type in ("true", "false"):
        return "bool"
    if node.type == "cast_expression":
        typed = node.child_by_field_name("type")
        return scope.meant(scope.text(typed)) if typed else ""
    cast = re.match(r"(?:static|reinterpret|const)_cast\s*<([^<>]*)>", text)
    if node.type == "call_expression" and cast:
        return scope.meant(cast[1])
    if node.type == "pointer_expression" and text.startswith("&") and node.named_children:
        inner = scope.kind(node.named_children[0])
        return inner + "*" if inner else ""
    if node.type == "binary_expression":  # p + n
        sides = [scope.kind(child) for child in node.named_children]
        return next((kind for kind in sides if kind.endswith("*")), "")
    return scope.kind(node)


def _of_literal(text: str) -> str:
    suffix = re.sub(r"^(0[xX][\da-fA-F']+|[\d.']+([eE][+-]?\d+)?)", "", text).lower()
    whole = re.match(r"0[xX]|[\d']+[uUlL]*$", text)
    if not whole:
        return {"": "double", "f": "float"}.get(suffix, "")
    return {"": "int", "u": "unsigned int", "l": "long", "ul": "unsigned long"}.get(suffix, "")


def template_arguments(named: Node, scope: HostScope) -> list[str | None]:
    """Return a name's template arguments, valid outside of its function; ``None``: unknown."""
    while named.type not in ("template_function", "template_method"):
        last = named.child_by_field_name("name") or named.child_by_field_name("field")
        if last is None:
            return []
        named = last
    listed = named.child_by_field_name("arguments")
    return [_argument(node, scope) for node in (listed.named_children if listed else ())]


def _argument(node: Node, scope: HostScope) -> str | None:
    text = scope.text(node)
    words = set(re.findall(r"[A-Za-z_]\w*", text))
    if not known_words(text, scope.bound):
        return None
    outer = scope.outer or scope
    local = any(
        word in scope.kinds
        and (word not in outer.kinds or scope.values.get(word) is not outer.values.get(word))
        for word in words
    )
    number = scope.value(node) if local or not words.isdisjoint(scope.numbers) else None
    if number is not None:
        return str(number)
    return None if local else " ".join(scope.meant(text).split())
