"""Host code cut out of a ``.cu`` file, so that NVRTC sees what runs on the GPU.

``nvcc`` compiles a file twice, NVRTC only for the device; ``main``, launches with
``<<<>>>`` and the C++ library are nothing to it. Lines keep their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

IMPLICIT = ("stddef.h", "stdint.h", "math.h", "float.h", "limits.h", "stdio.h", "assert.h")
"""Headers whose names device code may use although it does not include them: nvcc does."""

_SKIPPED = re.compile(
    r"""//[^\n]*|/\*.*?\*/                          # comments
    |R"(?P<raw>[^\s()\\]*)\(.*?\)(?P=raw)"           # raw strings
    |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'         # strings and characters
    |^[ \t]*\#(?:\\\r?\n|[^\n])*                     # directives, continued lines included
    """,
    re.S | re.M | re.X,
)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">][^\n]*', re.M)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+(?:\\\r?\n|[^\n])*", re.M)
_DEVICE = r"__global__|__device__|__constant__|__shared__|__managed__|constexpr"
_HOST_NAMES = re.compile(r"\bstd\s*::|\busing\s+namespace\s+std\b|\bcuda[A-Z]\w*|\bFILE\b|<<<")
_OPENS = re.compile(r'^(?:inline\s+)?(?:namespace\b[^(;]*|extern\s+"[^"]*"\s*)$', re.S)
_TYPE = re.compile(r"^(?:template\s*<.*>\s*)?(?:typedef\s+)?(?:struct|class|union|enum)\b", re.S)


def without_host_code(source: str, exists: Callable[[str], bool]) -> tuple[str, list[str]]:
    """Blank out host functions, and what names types that only the host has.

    Functions stay that are marked for the device or ``constexpr``, also by a macro of
    this file. Where braces do not match, everything stays.

    Args:
        source: The text of the file.
        exists: Whether an ``#include`` is found.

    Returns:
        The text, and the includes that were taken out because they are not found.
    """
    missing = [m for m in _INCLUDE.finditer(source) if not exists(m[1])]
    text = _blank(source, [m.span() for m in missing])
    markers = [m[1] for m in _MACRO.finditer(source) if re.search(_DEVICE, m[0])]
    device = re.compile(rf"\b(?:{'|'.join([_DEVICE, *map(re.escape, markers)])})\b")
    plain = _SKIPPED.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    plain = _keep_linkage(plain, text)
    spans = [
        (start, end)
        for start, body, end in _declarations(plain)
        if _is_host(plain[start:end], plain[start:body], device)
    ]
    return _blank(text, spans), [m[1] for m in missing]


def _keep_linkage(plain: str, text: str) -> str:
    """``extern "C"`` again, which lost its string."""
    for m in re.finditer(r'\bextern\s+"C(?:\+\+)?"', text):
        if plain[m.start() : m.start() + 6] == "extern":
            plain = plain[: m.start()] + m[0] + plain[m.end() :]
    return plain


def _declarations(plain: str) -> Iterator[tuple[int, int, int]]:
    """(start, where its braces begin, end) of what stands outside of any braces.

    Namespaces and ``extern "C"`` are entered; without braces the second is the end.
    """
    start, body, depth, parens = 0, -1, 0, 0
    for m in re.finditer(r"[{}();]", plain):
        char, at = m[0], m.start()
        if char in "()":
            parens += 1 if char == "(" else -1
        elif depth == 0 and char == "}":  # of a namespace
            start = at + 1
        elif parens > 0 and depth == 0 and char == "{":
            return  # a default argument with braces, or something unknown: leave it all
        elif char == "{":
            if depth == 0 and _OPENS.match(plain[start:at].strip()):
                start = at + 1
                continue
            body = at if depth == 0 else body
            depth += 1
        elif char == "}":
            depth -= 1
            head = plain[start:body].strip()
            if depth == 0 and not _TYPE.match(head) and "=" not in head.split("(")[0]:
                yield start, body, at + 1  # a function; other things end with a semicolon
                start, body = at + 1, -1
        elif char == ";" and depth == 0 and parens == 0:
            yield start, body if body >= 0 else at, at + 1
            start, body = at + 1, -1


def _is_host(whole: str, head: str, device: re.Pattern[str]) -> bool:
    head, whole = head.strip(), whole.rstrip()
    is_type = bool(_TYPE.match(head))
    if device.search(whole if is_type else head):
        return False
    if _HOST_NAMES.search(whole):
        return True
    if is_type or re.match(r"(?:typedef|using|static_assert|asm)\b", head):
        return False
    declared = head.split("=")[0]
    if "(" in declared and not re.match(r"(?:static\s+)?dim3\b", declared):
        return whole.endswith("}")  # a function: what is only declared does no harm
    # NVRTC takes no variables of the host but constants.
    return bool(declared) and not re.search(r"\bconst\b|^extern\b|^template\b", declared)


def _blank(text: str, spans: list[tuple[int, int]]) -> str:
    for start, end in spans:
        text = text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]
    return text
