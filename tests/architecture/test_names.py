"""One word means one thing: class names are unique, and words without a noun are no names."""

import ast
import io
import re
import tokenize
from collections import Counter, defaultdict

from tests.architecture.tree import definitions, docstrings, folder, modules

BANNED = frozenset(("seen", "told", "held", "kept", "left", "apart", "alike", "most", "ends"))
"""As names of classes, functions, parameters, variables and fields."""
NO_PART = frozenset(("seen", "told", "most"))
"""Words that no such name contains either."""
IN_PROSE = re.compile(r"\b(told|who|whoever)\b", re.I)
"""In docstrings and comments."""

NO_SUBJECT = re.compile(r"(What|Who|Whoever|Of|Or|As|It|They)\b")
"""Beginnings of a docstring without a verb or a noun of its own."""


def words(name: str) -> tuple[Counter[str], Counter[str]]:
    """Return the banned names and the banned words of docstrings and comments of a module."""
    path, tree = modules()[name]
    found = [(one, one.strip("_").lower()) for one in definitions(tree)]
    names = Counter(
        one for one, name in found if name in BANNED or NO_PART.intersection(name.split("_"))
    )
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
    comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
    prose = [*docstrings(tree), *comments]
    texts = Counter(word for text in prose for word in IN_PROSE.findall(text))
    return names, texts


def test_class_names_are_unique() -> None:
    where = defaultdict(list)
    for name, (_, tree) in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                where[node.name].append(name)
    several = {name: places for name, places in where.items() if len(places) > 1}
    print("in several modules:", *sorted(several))
    assert not several, several


def test_no_banned_word() -> None:
    found = defaultdict(Counter[str])
    for name in modules():
        for counted in words(name):
            found[folder(name)] += counted
    assert {place: dict(counted) for place, counted in found.items() if counted} == {}


def test_a_docstring_begins_with_its_verb_or_noun() -> None:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = [
        (name, text.partition("\n")[0])
        for name, (_, tree) in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, kinds) and NO_SUBJECT.match(text := ast.get_docstring(node) or "")
    ]
    assert found == []
