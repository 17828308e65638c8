"""Preprocessor conditions around a kernel, for messages about kernels that they exclude."""

import re

from ..source.preprocessor import directives

_CONDITION = re.compile(r"\s*#\s*(if|ifdef|ifndef|elif|elifdef|elifndef|else|endif)\b(.*)", re.S)
_COMMENT = re.compile(r"//.*|/\*.*?\*/", re.S)
_DEFINED = re.compile(r"(?:ifdef\s+|if\s+defined\s*\(?\s*)(\w+)\s*\)?")


def conditions(text: str, at: int) -> list[tuple[str, int]]:
    """Return the directives that a place depends on, outer ones first, each with its line.

    A guard against including a file twice is none.
    """
    stack: list[list[tuple[str, int]]] = []
    found = directives(text)
    for number, (start, end) in enumerate(found):
        m = _CONDITION.match(text[start:end])
        if start > at or not m:
            if start > at:
                break
            continue
        said = " ".join(_COMMENT.sub(" ", f"{m[1]} {m[2]}".replace("\\\n", " ")).split())
        line = text.count("\n", 0, start + len(m[0]) - len(m[0].lstrip())) + 1
        if m[1] == "endif":
            stack = stack[:-1]
        elif m[1] in ("if", "ifdef", "ifndef"):
            guard = re.search(r"(\w+)\W*$", said)
            following = text[slice(*found[number + 1])] if number + 1 < len(found) else ""
            defines = guard and re.match(rf"\s*#\s*define\s+{guard[1]}\s*$", following)
            stack.append([] if defines else [(said, line)])
        elif stack:
            stack[-1].append((said, line))
    return [branch for branches in stack for branch in branches[-1:]]


def left_out_with(text: str, kernel: str) -> str:
    """Return why a declared kernel was not compiled; ``""`` if no reason is known.

    The message names the innermost condition, and the option that makes it true if that is evident.
    """
    declared = re.search(rf"\b__global__\b[^;{{}}]*?\b{re.escape(kernel)}\s*\(", text)
    under = conditions(text, declared.end()) if declared else []
    if not under:
        return ""
    guards = ", ".join(f"#{said} (line {line})" for said, line in under)
    names = [m[1] for said, _ in under if (m := _DEFINED.fullmatch(said))]
    options = " ".join(f"--option=-D{name}" for name in names)
    defines = f"; {options} would define {', '.join(names)}" if names else ""
    return f"; {kernel} stands under {guards}{defines}"
