"""Damage to PTX texts, one function a level: each takes a text and gives it changed."""

import random
import re
from collections.abc import Callable

from tests.fuzz.samples import DIRECTIVES, NUMBERS, SAMPLES

TOKEN = re.compile(r'"[^"\n]*"|\.?[\w$%@]+|\s+|.', re.S)
_NUMBER = re.compile(r"\b(?:0[xX][0-9a-fA-F]+|0[fFdD][0-9a-fA-F]+|\d+)\b")

Change = Callable[[random.Random, str], str]


def _bytes(rng: random.Random, text: str) -> str:
    at = rng.randrange(len(text) + 1)
    what = rng.choice(
        [chr(rng.randrange(32, 127)), chr(rng.randrange(32)), "é", "\u202e", "½", "\n"]
    )
    cut = rng.choice([0, 1, 1, rng.randrange(20)])
    return text[:at] + rng.choice([what, "", what * 3]) + text[at + cut :]


def _tokens(rng: random.Random, text: str) -> str:
    parts = TOKEN.findall(text)
    solid = [i for i, part in enumerate(parts) if not part.isspace()]
    if not solid:
        return text
    i, j = rng.choice(solid), rng.choice(solid)
    action = rng.randrange(6)
    if action == 0:
        parts[i] = ""
    elif action == 1:
        parts[i], parts[j] = parts[j], parts[i]
    elif action == 2:
        parts[i] = parts[j]
    elif action == 3:
        parts[i] += " " + parts[i]
    elif action == 4:
        parts[i] = parts[i] * rng.choice([2, 50, 3000])
    else:
        other = TOKEN.findall(rng.choice(SAMPLES))
        parts[i] = rng.choice(other)
    return "".join(parts)


def _numbers(rng: random.Random, text: str) -> str:
    found = list(_NUMBER.finditer(text))
    if not found:
        return text
    m = rng.choice(found)
    return text[: m.start()] + rng.choice(NUMBERS) + text[m.end() :]


def _operands(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    places = [i for i, line in enumerate(lines) if "," in line and ";" in line]
    if not places:
        return text
    i = rng.choice(places)
    head, _, tail = lines[i].partition(";")
    opcode, *rest = head.split(None, 1) or [""]
    operands = [o.strip() for o in (rest[0] if rest else "").split(",")]
    j = rng.randrange(len(operands))
    names = re.findall(r"[%$]\w+", text) or ["%r1"]
    action = rng.randrange(7)
    if action == 0:
        rng.shuffle(operands)
    elif action == 1:
        operands[j] = rng.choice(names)
    elif action == 2:
        del operands[j]
    elif action == 3:
        operands.insert(j, rng.choice([*names, *NUMBERS, "_"]))
    elif action == 4:
        operands[j] = rng.choice(NUMBERS)
    elif action == 5:
        operands[j] = rng.choice(["{%s}", "[%s]", "!%s", "-%s", "%s|%s", "{%s, %s}", "[%s+4]"])
        operands[j] = re.sub("%s", lambda _: rng.choice(names), operands[j])
    else:
        operands[j] += rng.choice(["+4", "-8", "|%p1", ".x", "[0]"])
    lines[i] = f"{opcode} {', '.join(operands)};{tail}"
    return "\n".join(lines)


def _alike(rng: random.Random, text: str) -> str:
    """A register or a number for another of its kind: mostly still PTX."""
    found = list(re.finditer(r"%[a-z]+\d+|(?<=[ +-])\d+(?=[;,\]])|%[a-z]+\.[xyz]", text))
    if not found:
        return text
    m = rng.choice(found)
    kind = re.sub(r"\d+|\.[xyz]", "", m[0])
    alike = [o[0] for o in found if re.sub(r"\d+|\.[xyz]", "", o[0]) == kind]
    new = rng.choice(alike) if kind else rng.choice([*alike, *"01234", "31", "-1", "4096"])
    return text[: m.start()] + new + text[m.end() :]


def _statements(rng: random.Random, text: str) -> str:
    """An instruction left out, repeated, moved or put under a guard: mostly still PTX."""
    lines = text.split("\n")
    places = [i for i, line in enumerate(lines) if re.match(r"\s*[a-z@].*;\s*$", line)]
    if not places:
        return text
    i, j = rng.choice(places), rng.choice(places)
    action = rng.randrange(4)
    if action == 0:
        lines[i] = ""
    elif action == 1:
        lines[j] += lines[i]
    elif action == 2:
        lines[i], lines[j] = lines[j], lines[i]
    else:
        lines[i] = f"@{rng.choice(['', '!'])}%p{rng.choice('123')} {lines[i].lstrip()}"
    return "\n".join(lines)


def _modifiers(rng: random.Random, text: str) -> str:
    found = list(re.finditer(r"\.[a-z]\w*(?:::\w+)?", text))
    if not found:
        return text
    m, other = rng.choice(found), rng.choice(found)[0]
    other = rng.choice([other, rng.choice(re.findall(r"\.[a-z]\w*", rng.choice(SAMPLES)))])
    new = rng.choice(["", other, m[0] + other, other + m[0]])
    return text[: m.start()] + new + text[m.end() :]


def _lines(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    action = rng.randrange(6)
    if action == 0:
        del lines[i]
    elif action == 1:
        lines.insert(j, lines[i])
    elif action == 2:
        lines[i], lines[j] = lines[j], lines[i]
    elif action == 3:
        lines.insert(i, rng.choice(rng.choice(SAMPLES).split("\n")))
    elif action == 4:
        lines[i] = f"@{rng.choice(['%p1', '!%p1', '%r1', '%p'])} {lines[i]}"
    else:
        del lines[min(i, j) : min(max(i, j), min(i, j) + 8)]
    return "\n".join(lines)


def _directives(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    lines.insert(rng.randrange(len(lines) + 1), rng.choice(DIRECTIVES))
    return "\n".join(lines)


def _nests(rng: random.Random, text: str) -> str:
    at, times = rng.randrange(len(text) + 1), rng.choice([2, 100, 5000])
    what = rng.choice(
        ["{", "}", "(", "[", "{}", "{{", '"', "/*", "//", "!", "-", "|", "@", "<", ";"]
    )
    return text[:at] + what * times + text[at:]


def quoted(rng: random.Random, text: str) -> str:
    """A name, everywhere, as a string that would end a line of Python and go on."""
    name = rng.choice(re.findall(r"[%$]?[a-zA-Z_]\w+", text) or ["k"])
    return re.sub(rf"(?<![\w%$.]){re.escape(name)}\b", '"x\\n    boom\\n    #"', text)


CHANGES: tuple[tuple[str, Change, int], ...] = (
    ("bytes", _bytes, 2), ("tokens", _tokens, 4), ("numbers", _numbers, 4),
    ("operands", _operands, 5), ("modifiers", _modifiers, 3), ("lines", _lines, 4),
    ("directives", _directives, 2), ("nests", _nests, 1),
    ("quoted", quoted, 1), ("alike", _alike, 8), ("statements", _statements, 8),
)  # fmt: skip
