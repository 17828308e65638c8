"""Rows of the instruction table against ptxas: which modifiers, types and operands are PTX.

An instruction is drawn from a row's forms; it is taken as it is, or with one illegal change:
a modifier dropped, doubled, swapped or foreign, a foreign type, another operand. What ptxas
refuses, the simulator has to refuse; what ptxas accepts, the simulator has to compile, or to
refuse for a reason that the rows (``later``) or ``ptxas.NOT_YET`` give.
"""

import functools
import itertools
import random
import re
from collections import deque
from collections.abc import Iterator, Sequence

from kernels.errors import PtxError
from simulator.compile.compiler import Compiler
from simulator.isa import TABLE, Flow, parse
from simulator.isa.grammar import InstructionForm, form
from simulator.isa.matrix.fragments import registers
from tests.fuzz import ptxas
from tests.fuzz.report import Difference, Report, seeds

TYPES = (
    "pred", "b8", "u8", "s8", "b16", "u16", "s16", "f16", "b32", "u32", "s32", "f32", "f16x2",
    "b64", "u64", "s64", "f64", "b128",
)  # fmt: skip
"""Types that registers have."""
FOREIGN_TYPES = (*TYPES, "bf16", "bf16x2", "tf32", "s16x2", "u16x2", "e4m3x2", "u4", "b1")
TARGETS = ("sm_90", "sm_90a", "sm_100", "sm_100a")
BATCH = 1500
MOST = 10
"""Differences of a batch that are told: each is a run of ptxas."""
MANY = ("v2", "v4", "v8", "x1", "x2", "x4")
GUARDS = ("@%pred_1", "@!%pred_1", "@%b32_1", "@%nobody", "@X", "@!%f32_1")
MODULE = """.version 9.0
.target {}
.address_size 64
.global .b32 gv[64]; .shared .b32 sv[64]; .const .b32 cv[64];
"""
DECLARED = (
    ".local .b32 lv[64]; .param .align 16 .b8 q[64]; "
    + " ".join(f".reg .{kind} %{kind}_<4>;" for kind in TYPES)
    + " X: T: .branchtargets X; "
)
OTHERS = (
    *(f"%{kind}_3" for kind in TYPES), "!%pred_3", "1", "-1", "300", "64", "0xFFFFFFFFFF", "1.5",
    "0f3F800000", "0d3FF0000000000000", "%tid.x", "%clock64", "gv", "sv", "lv", "cv", "gv+4",
    "_", "[%b64_3]", "[%b32_3]", "[sv]", "[gv]", "[cv]", "[lv]", "[p]", "[%b64_3+4]", "[12]",
    "{%b32_2, %b32_3}", "{%b16_2, %b16_3}", "{%f32_2, %f32_3}", "%b32_3|%pred_3",
    "%pred_2|%pred_3", "_|%pred_3", "%b32_3|_", "%pred_2|_", "_|_", "WARP_SZ", "q",
    "%nowhere", "nowhere", "X", "%lanemask_eq", "p",
)  # fmt: skip


@functools.cache
def words() -> tuple[str, ...]:
    """Every modifier of every row."""
    found: set[str] = set()
    for row in (row for rows in TABLE.values() for row in rows):
        for text in (*row.signatures, *(text for text, _ in row.unsupported_signatures)):
            shape = form(text)
            for slot in (*shape.head, *shape.slots):
                found |= set(slot.words)
    return tuple(sorted(found))


def choices(shape: InstructionForm) -> list[tuple[str, ...]]:
    """What each place of a form may hold; an empty word is none."""
    slots = [slot.words if slot.needed else ("", *slot.words) for slot in shape.slots]
    return [*(slot.words for slot in shape.head), *slots, *shape.types]


def operand(spec: str, types: Sequence[str], modifiers: Sequence[str], n: int) -> str:
    """An operand that a form takes."""
    spec = spec.rstrip("?")
    if "|" in spec:
        first, second = spec.split("|")
        return f"{operand(first, types, modifiers, n)}|{operand(second, types, modifiers, n + 1)}"
    if pixel := re.fullmatch(r"{pixel(\d)", spec):
        return f"{{{', '.join(['%b16_1'] * int(pixel[1]))}}}"
    if many := re.fullmatch(r"@(\d)a?[fs]?|{(?:slope|offset)(\d)", spec):
        some = ", ".join(["%b32_1"] * int(many[1] or many[2]))
        return f"[%b64_3, {{{some}}}]" if many[1] else f"{{{some}}}"
    if spec in ("@", "@o"):
        space = next((m.split("::")[0] for m in modifiers if m.startswith(("param", "const"))), "")
        return {"param": "[q]", "const": "[cv]"}.get(space, "[%b64_3]")
    plain = {
        "imm": "1", "d8": "7", "bar": "1", "threads": "64", "label": "X", "where": "%b64_1",
        "registers": "24", "128": "128", "d16": "9", "event": "3", "policy": "%b64_2",
        "predicate": "%pred_2", "scale": "%pred_1", "parity": "%b32_1", "sign": "-1",
        "bit": "1", "count": "1", "quarter": "2", "zero": "0", "fraction": "0.5", "_": "_",
        "copied": "16", "16": "16", "sixteens": "%b32_1", "read": "%b32_1",
        "arrivals": "%b32_1",
    }  # fmt: skip
    if spec in plain:
        return plain[spec]
    if spec.startswith("#"):
        count, kind = registers(tuple(modifiers))[spec[1]]
        kind = kind.replace("tf", "b")
        return "{" + ", ".join(f"%{kind}_{i % 3}" for i in range(count)) + "}"
    if spec.startswith("v:"):
        count = next((int(m[1:]) for m in modifiers if m in MANY), 0)
        one = operand(spec[2:], types, modifiers, n)
        return "{" + ", ".join([one] * count) + "}" if count else one
    if spec.startswith("{"):
        part = f"%b{eval_bits(types[-1]) // 2}_"
        return f"{{{part}{n % 3}, {part}{(n + 1) % 3}}}"
    word = spec.rstrip("~%&*!^-")
    if word == "2t":
        kind = f"b{2 * int(types[-1][1:])}"
    else:
        known = {"i32": "b32", "members": "b32"}
        known |= {"t": types[-1], "t0": types[0]} if types else {"t": "", "t0": ""}
        kind = known.get(word, word)
    if kind not in TYPES:
        bits = {"tf32": 32}.get(kind) or eval_bits(kind)
        kind = f"b{bits}"
    return f"%{kind}_{n % 3}"


def eval_bits(kind: str) -> int:
    """The size of a packed type, from its name."""
    number, _, times = kind.lstrip("bfsu").partition("x")
    return int(number) * int(times or 1)


Drawn = tuple[str, tuple[str, ...], tuple[str, ...]]
"""Opcode, modifiers, operands."""


def legal(opcode: str, text: str, chosen: Sequence[str]) -> Drawn:
    """An instruction of a form."""
    shape = form(text)
    modifiers = tuple(m for m in chosen if m)
    types = modifiers[len(modifiers) - len(shape.types) :] if shape.types else ()
    specs = (*shape.results, *shape.sources)
    operands = tuple(operand(spec, types, modifiers, n) for n, spec in enumerate(specs))
    if opcode == "brx":
        operands = (operands[0], "T")
    return opcode, modifiers, operands


def changed(drawn: Drawn, rng: random.Random) -> Drawn:
    """One change, which mostly makes it illegal."""
    opcode, modifiers, operands = drawn
    mods, ops = list(modifiers), list(operands)
    how = rng.choice(
        ("drop", "double", "swap", "foreign", "type", "operand", "operand", "operands", "element")
    )
    if how == "drop" and mods:
        mods.pop(rng.randrange(len(mods)))
    elif how == "double" and mods:
        at = rng.randrange(len(mods))
        mods.insert(rng.randrange(len(mods) + 1), mods[at])
    elif how == "swap" and len(mods) > 1:
        at = rng.randrange(len(mods) - 1)
        mods[at], mods[at + 1] = mods[at + 1], mods[at]
    elif how == "foreign":
        word = rng.choice(words())
        if mods and rng.random() < 0.5:
            mods[rng.randrange(len(mods))] = word
        else:
            mods.insert(rng.randrange(len(mods) + 1), word)
    elif how == "type":
        places = [i for i, m in enumerate(mods) if m in FOREIGN_TYPES]
        if places:
            mods[rng.choice(places)] = rng.choice(FOREIGN_TYPES)
        else:
            mods.append(rng.choice(FOREIGN_TYPES))
    elif how == "element" and (braces := [i for i, one in enumerate(ops) if "{" in one]):
        at, kinds = rng.choice(braces), sorted({*TYPES} - {"f16x2"})  # no compiler declares such
        items = re.findall(r"%\w+", ops[at]) or ["{"]
        ops[at] = ops[at].replace(rng.choice(items), f"%{rng.choice(kinds)}_3", 1)
    elif how == "operand" and ops:
        ops[rng.randrange(len(ops))] = rng.choice(OTHERS)
    elif ops and rng.random() < 0.5:
        ops.pop(rng.randrange(len(ops)))
    else:
        ops.insert(rng.randrange(len(ops) + 1), rng.choice(OTHERS))
    return opcode, tuple(mods), tuple(ops)


def written(drawn: Drawn) -> str:
    """An instruction as PTX."""
    opcode, modifiers, operands = drawn
    return f"{'.'.join((opcode, *modifiers))} {', '.join(operands)};"


FORMS = {
    opcode: tuple(text for row in rows for text in row.signatures)
    for opcode, rows in TABLE.items()
    if any(row.signatures and row.flow is not Flow.CALL for row in rows)
}
ROWS = tuple(sorted(FORMS))


def everything(rng: random.Random) -> Iterator[Drawn]:
    """The whole product of every form, one of each in turn: some have a million."""

    def product(opcode: str, text: str) -> Iterator[Drawn]:
        for chosen in itertools.product(*(rng.sample(c, len(c)) for c in choices(form(text)))):
            yield legal(opcode, text, chosen)

    waiting = deque(product(opcode, text) for opcode in ROWS for text in FORMS[opcode])
    while waiting:
        lines = waiting.popleft()
        if line := next(lines, None):
            yield line
            waiting.append(lines)


def draw(rng: random.Random) -> Drawn:
    """An instruction of a random row, perhaps with a change."""
    opcode = rng.choice(ROWS)
    text = rng.choice(FORMS[opcode])
    found = legal(opcode, text, [rng.choice(c) for c in choices(form(text))])
    found = changed(found, rng) if rng.random() < 0.8 else found
    return (f"{rng.choice(GUARDS)} {found[0]}", *found[1:]) if rng.random() < 0.1 else found


def verdicts(lines: Sequence[str], target: str) -> dict[int, str]:
    """What the simulator says against each line."""
    entries = (
        f".visible .entry k{i}(.param .align 16 .b8 p[64]) {{ {DECLARED} {line} ret; }}"
        for i, line in enumerate(lines)
    )
    module = parse(MODULE.format(target) + "\n".join(entries))
    found: dict[int, str] = {}
    for i in range(len(lines)):
        try:
            Compiler(module, f"k{i}").program()
        except PtxError as error:
            found[i] = str(error)
    return found


def compare(drawn: Sequence[Drawn], target: str, report: Report, seed: int) -> None:
    """Hold a batch against ptxas."""
    lines = sorted({written(d) for d in drawn if d[2] is not None})
    head = MODULE.format(target) + f".visible .entry k(.param .align 16 .b8 p[64]) {{ {DECLARED}\n"
    theirs = ptxas.refused(head, lines, "ret; }\n", target)
    ours = verdicts(lines, target)
    report.launches += len(lines)
    known = len(report.differences)
    for i, line in enumerate(lines):
        opcode = re.split(r"[ .;]", re.sub(r"^@\S+ ", "", line))[0]
        report.reach("rows", opcode)
        said = theirs.get(i, "")
        if said == ptxas.CRASHED or (i not in ours and ptxas.of_its_own(said, opcode)):
            report.reach("agreed", "ptxas fails")
            continue
        if (i in theirs) == (i in ours):
            report.reach("agreed", "refused" if i in ours else "accepted")
            continue
        if i in ours and (reason := permitted(line, ours[i], opcode)):
            report.reach("not yet", reason)
            continue
        if len(report.differences) - known == MOST:
            report.notes.append(f"seed {seed}: more lines differ than the first {MOST}")
            return
        if bool(ptxas.refused(head, [line], "ret; }\n", target)) == (i in ours):
            continue  # said of another line's code, or not said where others are wrong
        if i in theirs:
            what = f"{target}: ptxas refuses ({theirs[i]}), the simulator does not"
        else:
            what = f"{target}: ptxas accepts, the simulator says: {ours[i]}"
        report.differences.append(Difference(seed, what, line))


def assert_agrees(drawn: Sequence[Drawn], target: str) -> None:
    """Assert that ptxas takes and refuses the same lines of a batch, and some of both."""
    report = Report()
    compare(drawn, target, report, 0)
    assert not report.differences, report.differences[0].program
    assert report.reached["agreed"].keys() >= {"accepted", "refused"}


def permitted(line: str, message: str, opcode: str) -> str | None:
    """The reason for refusing what ptxas accepts, if it is one of those that are listed."""
    for pattern, reason in ptxas.QUIRKS.items():
        if re.search(pattern, re.sub(r"^@\S+ ", "", line)):
            return reason
    if "does not execute" not in message:
        return None
    about = {a for rows in TABLE.values() for row in rows for _, a in row.unsupported_signatures}
    for name in {TABLE[opcode][0].section, *about}:
        if f"({name})" in message:
            return name
    return next((why for said, why in ptxas.NOT_YET.items() if re.search(said, message)), None)


def run(seconds: float, seed: int, count: int | None = None) -> Report:
    """The net; without ``count``, a batch of the whole product stands beside each drawn one."""
    report = Report()
    report.known = {"rows": set(ROWS)}
    if ptxas.path() is None:
        report.notes.append("ptxas is not here: pip install tilescope[test]")
        return report
    whole = everything(random.Random(seed)) if count is None else iter(())
    for number in seeds(seconds, seed, count):
        rng = random.Random(number)
        drawn = [draw(rng) for _ in range(BATCH)], rng.choice(TARGETS)
        for batch, target in (drawn, (list(itertools.islice(whole, BATCH)), "sm_100a")):
            report.programs += len(batch)
            compare(batch, target, report, number)
    return report
