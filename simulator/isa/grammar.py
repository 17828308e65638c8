"""Grammar of instruction forms: modifiers, types and operands after an opcode.

A row lists its *forms*, each a line such as ``"rn|rz? ftz? .f32 : t = t t"``:

- ``rn|rz?``: one modifier of these or none (without ``?``: one of them is needed); modifiers
  may come in any order, as ptxas has it, each at most once;
- ``lo|hi!``: directly after the opcode;
- ``.f32|f64``: a type; several types come in their order;
- ``@100``: for targets from sm_100 on (``@-69``: up to sm_69; ``@a``: sm_90a and the like);
- left of ``=`` the types of the results, right of it those of the sources (``operands``): ``t``
  the form's last type, ``t0`` its first, ``2t`` one of twice the size, or a type's name; ``@``
  an address, ``members`` a member mask, ``label``; ``CC`` the condition code, ``SP`` the stack
  pointer, ``stack`` the stack, ``end`` its end and ``own`` what addresses of the block's own shared
  memory have, which stand in no text: results are written, all others are read (``roles``).
"""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Slot:
    """One modifier out of some."""

    words: tuple[str, ...]
    needed: bool


@dataclass(frozen=True)
class InstructionForm:
    """One way to write an opcode; see the module's text.

    Attributes:
        text: As the row has it.
        head: Slots directly after the opcode; ``slots``: in any order; ``types``: in order.
        targets: The lowest and the highest sm number; ``features``: of one target alone.
        results: Left of ``=``; ``sources``: right of it.
        written: What it writes that stands in no text; ``read``: what it reads so.
    """

    text: str
    head: tuple[Slot, ...]
    slots: tuple[Slot, ...]
    types: tuple[tuple[str, ...], ...]
    targets: tuple[int, int]
    features: bool
    results: tuple[str, ...]
    sources: tuple[str, ...]
    written: tuple[str, ...] = ()
    read: tuple[str, ...] = ()


@dataclass(frozen=True)
class Match:
    """A form that an instruction has, and the types it has there."""

    form: InstructionForm
    types: tuple[str, ...]


@dataclass(frozen=True)
class Misfit:
    """Why an instruction has no form: a sentence, and how many modifiers had their place."""

    why: str
    placed: int


_CLUSTERS = 90
"""The first target that has clusters."""
_UNSAID = ("CC", "SP", "stack", "end", "own")


@functools.cache
def form(text: str) -> InstructionForm:
    """Return a form, read from its line."""
    modifiers, _, operands = f" {text} ".partition(" : ")
    head: list[Slot] = []
    slots: list[Slot] = []
    types: list[tuple[str, ...]] = []
    targets, features = (0, 999), False
    for word in modifiers.split():
        if word == "@a":
            features = True
        elif word.startswith("@"):
            number = int(word[1:])
            targets = (number, 999) if number > 0 else (0, -number)
        elif word.startswith("."):
            types.append(tuple(word[1:].split("|")))
        else:
            found = Slot(tuple(word.rstrip("?!").split("|")), not word.endswith("?"))
            (head if word.endswith("!") else slots).append(found)
    outputs, _, right = f" {operands} ".partition("= ")
    results, sources = outputs.split(), right.split()
    return InstructionForm(
        text, tuple(head), tuple(slots), tuple(types), targets, features,
        *(tuple(w for w in words if w not in _UNSAID) for words in (results, sources)),
        *(tuple(w for w in words if w in _UNSAID) for words in (results, sources)),
    )  # fmt: skip


_MAY_REPEAT = frozenset(
    {"NaN", "approx", "cc", "relu", "sat", "satfinite", "shiftamt", "sync", "uni"}
)
"""Modifiers that ptxas lets stand twice."""


def fit(shape: InstructionForm, modifiers: Sequence[str]) -> Match | Misfit:
    """Whether modifiers are those of a form."""
    rest = list(modifiers)
    for slot in shape.head:
        if not rest or rest[0] not in slot.words:
            return _missing(slot.words, len(modifiers) - len(rest))
        rest.pop(0)
    first = len(modifiers) - len(rest)
    used: dict[int, str] = {}
    types: list[str] = []
    for at, word in enumerate(rest, first):
        if word in _MAY_REPEAT and word in modifiers[:first]:
            continue
        if len(types) < len(shape.types) and word in shape.types[len(types)]:
            types.append(word)
            continue
        places = [i for i, slot in enumerate(shape.slots) if word in slot.words]
        free = [i for i in places if i not in used]
        if free:
            used[free[0]] = word
        elif places and word in _MAY_REPEAT and word in used.values():
            continue
        elif places:
            other = used[places[0]]
            said = f"'.{word}' twice" if other == word else f"'.{word}' beside '.{other}'"
            return Misfit(said, at)
        else:
            return Misfit(f"'.{word}' does not belong there", at)
    for number, slot in enumerate(shape.slots):
        if slot.needed and number not in used:
            return _missing(slot.words, len(modifiers))
    if len(types) < len(shape.types):
        return _missing(shape.types[len(types)], len(modifiers))
    return Match(shape, tuple(types))


def _missing(words: Sequence[str], placed: int) -> Misfit:
    named = ", ".join(f"'.{word}'" for word in words[:6])
    if len(words) == 1:
        return Misfit(f"{named} is missing", placed)
    return Misfit(f"one of {named}{' ...' if len(words) > 6 else ''} is missing", placed)


def find(forms: Sequence[str], modifiers: tuple[str, ...], target: str) -> list[Match] | Misfit:
    """Return the forms with these modifiers (operands distinguish them), or why none has."""
    number = re.search(r"sm_(\d+)([af]?)", target)
    found: list[Match] = []
    best = Misfit("it has no form", -1)
    for text in forms:
        shape = form(text)
        result = fit(shape, modifiers)
        if isinstance(result, Match):
            low, high = shape.targets
            low = max(low, _CLUSTERS) if any(map(_of_clusters, modifiers)) else low
            if not number or (low <= int(number[1]) <= high and (number[2] or not shape.features)):
                found.append(result)
                continue
            which = f"sm_{low} and later" if low else f"sm_{high} and earlier"
            which = "such as sm_90a" if shape.features else which
            result = Misfit(f"for targets {which} only", len(modifiers))
        if result.placed > best.placed:
            best = result
    if found:
        return found
    known = {w for text in forms for group in _words(form(text)) for w in group}
    strange = next((m for m in modifiers if m not in known), None)
    return Misfit(f"it knows no '.{strange}'", 0) if strange is not None else best


def _of_clusters(word: str) -> bool:
    return word == "cluster" or word.startswith("shared::cluster")


def _words(shape: InstructionForm) -> list[tuple[str, ...]]:
    return [*(slot.words for slot in (*shape.head, *shape.slots)), *shape.types]
