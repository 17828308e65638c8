"""Minimal preprocessor for the parser of unpreprocessed text."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

VARIANTS = ("first", "last")
"""Which branch of ``#if`` ... ``#else`` is read: braces that each opens need but one closing."""

_TOKEN = re.compile(
    r"""(?P<comment>//(?:\\\r?\n|[^\n])*|/\*.*?\*/)
    |(?P<string>R"(?P<raw>[^\s()\\]*)\(.*?\)(?P=raw)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<directive>^[ \t]*\#(?:\\\r?\n|/\*.*?\*/|[^\n])*)
    |(?P<number>\.?\d(?:[\w.']|[eEpP][+-])*)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<brace>[{}();])
    """,
    re.S | re.M | re.X,
)
_DEFINE = re.compile(r"\s*#\s*define\s+(\w+)(\([^)]*\))?(.*)", re.S)
_CONDITION = re.compile(r"\s*#\s*(if|ifdef|ifndef|elif|elifdef|elifndef|else|endif)\b(.*)", re.S)
_LINE_ENDS = re.compile(r"[ \t]*(?://[^\n]*|/\*[^\n]*?\*/)?\n\s*(?=[A-Za-z_}])")
_STATEMENTS = re.compile(r"[{};]|<<<")
_LAUNCH = re.compile(r"\s*[\w:]+\s*(?:<[^;{}]{0,300}>)?\s*<<<")
_LAST_WORD = re.compile(r"([A-Za-z_]\w*)\s*(?:\([^()]*\))?$")
_QUALIFIERS = frozenset(
    ["__host__", "__device__", "__global__", "__forceinline__", "__noinline__", "__inline__",
     "inline", "static", "extern", "constexpr", "const", "volatile", "__restrict__", "__restrict",
     "noexcept"]
)  # fmt: skip
_ATTRIBUTES = frozenset(
    ["__launch_bounds__", "__cluster_dims__", "__block_size__", "__maxnreg__", "__attribute__",
     "__align__", "__declspec"]
)  # fmt: skip
"""What takes arguments and says nothing of where code runs."""
_ATTRIBUTE = re.compile(rf"\b(?:{'|'.join(_ATTRIBUTES)})\s*(?:\((?:[^()]|\([^()]*\))*\))")
KEYWORDS = _QUALIFIERS | frozenset(
    ["bool", "char", "class", "double", "enum", "float", "int", "long", "short", "signed",
     "struct", "template", "typedef", "typename", "union", "unsigned", "void"]
)  # fmt: skip
"""Words that name nothing."""


@dataclass(frozen=True)
class Macro:
    """A macro: whether it takes arguments, and what it stands for; of several definitions, all.

    ``params``: their names, of the last definition.
    """

    call: bool
    body: str
    params: tuple[str, ...] = ()


class Macros(dict[str, Macro]):
    """The macros of some files, and what they say of the declarations that use them.

    Attributes:
        marks: Words that mark a declaration for the device: given ones and macros of them.
        qualifiers: Macros that stand for nothing but qualifiers.
        attributes: Macros with arguments that stand for attributes, or for nothing.
        whole: Macros whose text ends a declaration, so that no semicolon need follow.
    """

    def __init__(self, texts: Iterable[str], options: Sequence[str], marks: frozenset[str]) -> None:
        super().__init__()
        for option in options:
            m = re.match(r"(?:-D|--define-macro=)\s*(\w+)(?:=(.*))?$", option, re.S)
            if m:
                self[m[1]] = Macro(False, m[2] or "")
        for text in texts:
            for start, end in directives(text):
                m = _DEFINE.match(text[start:end])
                if m:
                    body = re.sub(r"\\\r?\n", " ", m[3]).strip()
                    if m[1] in self:  # in another branch: it may be either
                        body = f"{self[m[1]].body} {body}".strip()
                    params = tuple(re.findall(r"\w+", m[2] or ""))
                    self[m[1]] = Macro(bool(m[2]), body, params)
        self.marks, self.qualifiers, self.whole = set(marks), set[str](), set[str]()
        self.attributes = {
            name for name, macro in self.items()
            if macro.call and not _ATTRIBUTE.sub("", macro.body).strip()
        }  # fmt: skip
        size = -1
        while size != len(self.marks) + len(self.qualifiers) + len(self.whole):
            size = len(self.marks) + len(self.qualifiers) + len(self.whole)
            for name, macro in self.items():
                words = re.findall(r"[A-Za-z_]\w*", macro.body)
                if not self.marks.isdisjoint(words):
                    self.marks.add(name)
                last = _LAST_WORD.search(macro.body)
                if macro.body.endswith(("}", ";")) or (last and last[1] in self.whole):
                    self.whole.add(name)
                known = all(w in _QUALIFIERS or w in self.qualifiers for w in words)
                only = re.fullmatch(r"(?:\b[A-Za-z_]\w*\s*)*", macro.body)
                if known and only and not macro.call:
                    self.qualifiers.add(name)


def directives(text: str) -> list[tuple[int, int]]:
    """Return the ranges of directives, including continued lines."""
    return [m.span() for m in _TOKEN.finditer(text) if m.lastgroup == "directive"]


def blank(text: str, start: int, end: int, keep: Sequence[tuple[int, int]] = ()) -> str:
    """Return the text with spaces from one place to another; lines and some spans stay."""
    pieces, at = [text[:start]], start
    for low, high in keep:
        if low >= start and high <= end:
            pieces += [re.sub(r"[^\r\n]", " ", text[at:low]), text[low:high]]
            at = high
    return "".join([*pieces, re.sub(r"[^\r\n]", " ", text[at:end]), text[end:]])


class Readable(NamedTuple):
    """Text prepared for the parser; all positions are those of the original.

    Attributes:
        plain: Text without comments, directives, inactive branches, qualifier macros, and macro
            calls that are declarations.
        bare: Text for searching words: with macros, without strings.
        outside: (start, body, end) of declarations outside of any braces but namespaces', and of
            macro calls that ``bare`` lacks.
        calls: (start, end) of macro calls that are declarations by a semicolon.
    """

    plain: str
    bare: str
    outside: list[tuple[int, int, int]]
    calls: list[tuple[int, int]]


def readable(text: str, macros: Macros, variant: str) -> Readable:
    """Prepare a text for a parser."""
    plain, bare = list(text), list(text)
    tokens = list(_TOKEN.finditer(text))
    for start, end in _not_taken(text, variant):
        _clear(plain, start, end)
        _clear(bare, start, end)
    depth = parens = 0
    fresh = True  # at the beginning of a declaration
    outside: list[tuple[int, int, int]] = []
    calls: list[tuple[int, int]] = []
    begin = body = read = -1
    for i, m in enumerate(tokens):
        kind, (start, end) = m.lastgroup or "", m.span()
        if m["string"] is not None:
            kind = "string"
        if plain[start] == " " and text[start] != " ":
            continue  # in a branch that is not taken
        if start < read:
            continue  # in a call of a macro that stands for declarations
        if kind in ("comment", "directive"):
            _clear(plain, start, end)
            _clear(bare, start, end)
            continue
        if kind == "string":
            _clear(bare, start, end)
        elif kind == "word" and (
            m[0] in _ATTRIBUTES or (m[0] in macros.attributes and (macros[m[0]].body or not fresh))
        ):
            _clear(plain, start, _call_end(tokens, i + 1) or end)
            continue
        elif kind == "word" and m[0] in macros.qualifiers:
            _clear(plain, start, end)
            continue
        elif kind == "word" and fresh and depth == 0 and parens == 0:
            macro = macros.get(m[0])
            closing = _call_end(tokens, i + 1) if macro and macro.call else None
            if macro and m[0] in macros.whole and (closing or not macro.call):
                read = closing or end
                _clear(plain, start, read)
                _clear(bare, start, read)  # no qualifier of what follows
                outside.append((start, start, read))
                continue
            if closing is not None and not re.match(r"\s*[({:]|\s*\w", text[closing:]):
                calls.append((start if begin < 0 else begin, closing))
                _clear(plain, *calls[-1])
        elif kind == "brace":
            parens += (m[0] == "(") - (m[0] == ")")
            opens = m[0] == "{" and not re.search(
                r"\b(namespace|extern)\b[^;{}()]*$", text[max(0, start - 200) : start]
            )
            if opens or (m[0] == "{" and depth):
                body = body if depth else start
                depth += 1
            elif m[0] == "}" and depth:
                depth -= 1
                if not depth and begin >= 0:
                    outside.append((begin, body, end))
            elif m[0] == ";" and not depth and not parens and begin >= 0:
                outside.append((begin, end, end))
        begin = start if begin < 0 and not depth else begin
        if kind == "brace" and m[0] in "{};" and depth == 0 and parens == 0:
            fresh, begin = True, -1
        else:  # ``extern MACRO(x);`` declares as well
            fresh = fresh and m[0] == "extern"
    return Readable("".join(plain), "".join(bare), outside, calls)


def without_declaring_macros(text: str, texts: Iterable[str]) -> str:
    """Return a text without macros for declarations or qualifiers; ``texts`` define macros."""
    macros = Macros(texts, (), frozenset())
    for start, body, end in readable(text, macros, VARIANTS[0]).outside:
        if start == body:
            text = blank(text, start, end)
    if macros.qualifiers:
        words = rf"\b(?:{'|'.join(map(re.escape, macros.qualifiers))})\b"
        text = re.sub(words, lambda m: " " * len(m[0]), text)
    return text


def without_statement_macros(text: str, macros: Macros) -> str:
    """Return a text without macros in front of a statement: ``TIME_BEGIN k<<<1, 32>>>(a);``.

    To a grammar that is one declaration. A word in capitals may be a macro of a header that is not
    there.
    """
    plain, tokens = list(text), list(_TOKEN.finditer(text))
    depth = read = 0
    fresh = False  # at the beginning of a statement
    for i, m in enumerate(tokens):
        if m.start() < read or m.lastgroup in ("comment", "directive"):
            continue
        if m.lastgroup == "word" and fresh and depth and (m[0] in macros or m[0].isupper()):
            end = _call_end(tokens, i + 1) or m.end()
            known = macros.get(m[0])
            nothing = known is not None and (not known.body or m[0] in macros.whole)
            if _STATEMENTS.search(text, m.end(), end):
                pass  # it stands for what is given to it: DISPATCH(type, { k<<<1, 32>>>(a); })
            elif nothing or _LINE_ENDS.match(text, end) or _LAUNCH.match(text, end):
                _clear(plain, m.start(), end)
                read = end
                continue
        fresh = m[0] in ("{", "}", ";")
        depth += (m[0] == "{") - (m[0] == "}" and depth > 0)
    return "".join(plain)


def _clear(chars: list[str], start: int, end: int) -> None:
    for i in range(start, end):
        if chars[i] not in "\r\n":
            chars[i] = " "


def _call_end(tokens: Sequence[re.Match[str]], at: int) -> int | None:
    """Behind a macro call's closing parenthesis, given the token after its name."""
    depth = 0
    for m in tokens[at:]:
        if m[0] == "(":
            depth += 1
        elif m[0] == ")":
            depth -= 1
            if depth == 0:
                return m.end()
        elif depth == 0 and m.lastgroup != "comment":
            return None
    return None


def _not_taken(text: str, variant: str) -> list[tuple[int, int]]:
    """Return the branches of conditions that this variant leaves out."""
    left_out: list[tuple[int, int]] = []
    stack: list[list[tuple[int, int, str]]] = []  # of each condition: its branches so far

    def close(start: int) -> None:
        if stack and stack[-1]:
            low, _, condition = stack[-1][-1]
            stack[-1][-1] = low, start, condition

    for start, end in directives(text):
        m = _CONDITION.match(text[start:end])
        if not m:
            continue
        if m[1] in ("if", "ifdef", "ifndef"):
            stack.append([(end, end, m[2].strip())])
        elif stack and m[1] == "endif":
            close(start)
            branches = stack.pop()
            possible = [b for b in branches if b[2] != "0"] if len(branches) > 1 else branches
            chosen = possible[0 if variant == "first" else -1]
            left_out += [b[:2] for b in branches if b is not chosen]
            if len(branches) == 1 and branches[0][2] == "0":
                left_out.append(branches[0][:2])
        elif stack:
            close(start)
            stack[-1].append((end, end, m[2].strip()))
    return left_out
