"""``docs/instructions.md``, made of the rows: ``python -m tests.studies.supported`` writes it
anew."""

from collections.abc import Iterable

from simulator.isa import TABLE, InstructionSpec
from simulator.isa.grammar import form
from simulator.isa.memory.stack import STACK_BYTES
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "instructions.md"
_LONG = 160
_HEAD = f"""# Instructions

Every opcode of PTX ISA 9.0, and what of it the simulator executes. Generated from the rows in
`simulator/isa/` by `python -m tests.studies.supported`; a test fails when it is stale. `a|b?` is
one of these modifiers or none; `.a|b` is a type. Which of them go together, with which operands,
for which target, the row says, and ptxas agrees. What is refused is refused before the launch, with
the line.

What stands under *from the manual* is of `sm_100` and later: it was written from the PTX ISA, ptxas
takes it, exact fractions agree with it, and it was **not seen on hardware**.

Some have no effect on a result, and are taken as that: `prefetch`, `prefetchu`, `discard` (the
bytes stay as they are), `applypriority`, `createpolicy` (its policy is zero), cache operators and
hints, `setmaxnreg`, `griddepcontrol`, `pmevent`, `brkpt`. `nanosleep` returns at once. `%clock`,
`%clock64` and `%globaltimer` count nanoseconds of the simulating machine's clock, from any start:
a later read is no smaller, lanes that read together read the same, and nothing of a GPU's time
is in them. `alloca` has as many bytes in each function as a thread's stack (`stack_bytes`,
{STACK_BYTES} unless said otherwise).
"""


def _variants(forms: Iterable[str]) -> str:
    """Forms without operands and targets; of many, all their words."""
    shapes = [form(text) for text in forms]
    written: dict[str, None] = {}
    words: dict[str, None] = {}
    types: dict[str, None] = {}
    for shape in shapes:
        slots = ["|".join(s.words) + "?" * (not s.needed) for s in (*shape.head, *shape.slots)]
        written[" ".join([*slots, *("." + "|".join(t) for t in shape.types)])] = None
        words |= dict.fromkeys(w for s in (*shape.head, *shape.slots) for w in s.words)
        types |= dict.fromkeys("." + w for t in shape.types for w in t)
    if sum(map(len, written)) > _LONG:
        return _code("|".join(words)) + ", " + _code("|".join(types))
    return ", ".join(_code(text) for text in written if text)


def _code(text: str) -> str:
    return f"`{text.replace('|', chr(92) + '|')}`" if text else ""


def _line(opcode: str, rows: tuple[InstructionSpec, ...]) -> str:
    known = [text for row in rows for text in row.signatures]
    seen = [text for text in known if form(text).targets[0] < 100]
    later = [pair for row in rows for pair in row.unsupported_signatures]
    missing = "; ".join(f"{about}: {_variants([text])}" for text, about in later)
    state = ("partly" if later else "yes") if known else "refused"
    missing = missing if known else rows[0].section
    unseen = _variants(text for text in known if text not in seen)
    return f"| `{opcode}` | {state} | {_variants(seen)} | {unseen} | {missing} |"


def page() -> str:
    """The text."""
    lines = [_HEAD, "| opcode | executed | variants | from the manual | refused |"]
    lines.append("| --- | --- | --- | --- | --- |")
    lines += [_line(opcode, rows) for opcode, rows in sorted(TABLE.items())]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
