"""Ways to damage a PTX text, drawn by seed."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

Damage = Callable[[str, random.Random], str]


def truncated(text: str, rng: random.Random) -> str:
    return text[: rng.randrange(len(text))]


def shuffled(text: str, rng: random.Random) -> str:
    """Some lines in another order."""
    lines = text.split("\n")
    first = rng.randrange(len(lines))
    last = min(len(lines), first + rng.choice([2, 3, 10, len(lines)]))
    piece = lines[first:last]
    rng.shuffle(piece)
    return "\n".join(lines[:first] + piece + lines[last:])


def without_tokens(text: str, rng: random.Random) -> str:
    tokens = re.split(r"(\s+|[,;{}()\[\].+:])", text)
    for _ in range(rng.choice([1, 1, 1, 5, 50])):
        tokens[rng.randrange(len(tokens))] = ""
    return "".join(tokens)


def without_lines(text: str, rng: random.Random) -> str:
    lines = text.split("\n")
    for _ in range(rng.choice([1, 1, 3, 20])):
        lines[rng.randrange(len(lines))] = ""
    return "\n".join(lines)


def swapped_tokens(text: str, rng: random.Random) -> str:
    """Two words change places: registers of the wrong type, labels as operands ..."""
    tokens = re.split(r"([\w%$.]+)", text + " end ")
    for _ in range(rng.choice([1, 1, 4])):
        i, j = (2 * rng.randrange(len(tokens) // 2) + 1 for _ in range(2))
        tokens[i], tokens[j] = tokens[j], tokens[i]
    return "".join(tokens)


def other_words(text: str, rng: random.Random) -> str:
    """A word is replaced by a copy of another: an opcode, a type, a register."""
    tokens = re.split(r"([\w%$]+)", text + " end ")
    for _ in range(rng.choice([1, 1, 4])):
        i, j = (2 * rng.randrange(len(tokens) // 2) + 1 for _ in range(2))
        tokens[i] = tokens[j]
    return "".join(tokens)


def random_bytes(text: str, rng: random.Random) -> str:
    raw = bytearray(text.encode())
    for _ in range(rng.choice([1, 1, 5, 100])):
        raw[rng.randrange(len(raw))] = rng.randrange(256)
    return raw.decode("utf-8", errors="replace")


def other_numbers(text: str, rng: random.Random) -> str:
    """Numbers in the text become others: counts, offsets, immediates, alignments."""
    found = list(re.finditer(r"(?<![\w%$.])\d+\b", text))
    for match in sorted(rng.sample(found, min(len(found), rng.choice([1, 1, 5]))), reverse=True,
                        key=lambda m: m.start()):  # fmt: skip
        new = rng.choice(["0", "1", "-1", "3", "1000000", "4294967296", "99999999999999999999"])
        text = text[: match.start()] + new + text[match.end() :]
    return text


MODIFIERS = (
    "f64", "u8", "s64", "v4", "b128", "sat", "ftz", "f16", "pred", "rn", "wide", "global",
    "shared", "volatile", "acquire", "cta",
)  # fmt: skip


def _instructions(lines: list[str]) -> list[int]:
    return [i for i, line in enumerate(lines) if re.match(r"\s+[a-z]\S*\s.*;", line)]


def other_opcodes(text: str, rng: random.Random) -> str:
    """Instructions get the opcode of another line, with operands that do not suit it."""
    lines = text.split("\n")
    places = _instructions(lines)
    for _ in range(rng.choice([1, 1, 3]) if places else 0):
        i, j = rng.choice(places), rng.choice(places)
        lines[i] = f"\t{lines[j].split()[0]} {lines[i].split(None, 1)[1]}"
    return "\n".join(lines)


def other_modifiers(text: str, rng: random.Random) -> str:
    """Instructions lose a modifier or a type, or get one more."""
    lines = text.split("\n")
    places = _instructions(lines)
    for _ in range(rng.choice([1, 1, 3]) if places else 0):
        i = rng.choice(places)
        opcode, operands = lines[i].split(None, 1)
        parts = opcode.split(".")
        if rng.random() < 0.5 and len(parts) > 1:
            parts.pop(rng.randrange(1, len(parts)))
        else:
            parts.insert(rng.randrange(1, len(parts) + 1), rng.choice(MODIFIERS))
        lines[i] = f"\t{'.'.join(parts)} {operands}"
    return "\n".join(lines)


def other_declarations(text: str, rng: random.Random) -> str:
    """Lines that declare variables, registers and parameters are damaged."""
    lines = text.split("\n")
    places = [i for i, line in enumerate(lines) if re.match(r"\s*\.[a-z]", line)]
    for _ in range(rng.choice([1, 1, 3]) if places else 0):
        i = rng.choice(places)
        kind = rng.choice([other_numbers, other_words, swapped_tokens, without_tokens])
        lines[i] = kind(lines[i] + " ", rng)
    return "\n".join(lines)


def noise(text: str, rng: random.Random) -> str:
    return rng.randbytes(rng.randrange(1, 400)).decode("latin-1")


DAMAGE: tuple[Damage, ...] = (
    truncated, shuffled, without_tokens, without_lines, swapped_tokens, other_words, random_bytes,
    other_numbers, other_opcodes, other_modifiers, other_declarations, noise,
)  # fmt: skip
