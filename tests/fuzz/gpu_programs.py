"""Random programs that a GPU can judge: drawn, and made parts of one module."""

import re

from tests.fuzz import cuda_program, ptx_statements
from tests.fuzz.compare import Launch

HEADER = ".version 9.0\n.target sm_90\n.address_size 64\n"
VARIABLE = re.compile(
    r"^(?:\.(?:visible|weak|extern|common)\s+)*\.(?:global|const|shared)\b[^;{=\n]*?([\w$]+)\s*[\[;=]",
    re.M,
)
"""A variable of the module: its name."""
OPEN = {
    r"\bactivemask\b": "which lanes run together is the GPU's choice",
    r"@!?%[\w$]+\s+(?:set|testp)\.":
        "ptxas 13.0 goes astray where the guard is false: most of set converts what the register "
        "holds, and a testp writes its predicate",
    r"\bbfe\.s32\s+[^,]+,[^,]+,\s*(?:3[2-9]|[4-9]\d|\d{3,})\s*,\s*\d+;":
        "ptxas 13.0 folds a position beyond the word, above level 0, to all ones",
    r"\bbfi\.b32\s+[^,]+,[^,]+,[^,]+,\s*\d+\s*,\s*(?:3[2-9]|[4-9]\d|\d{3,});":
        "ptxas 13.0 takes a constant length modulo 32, above level 0",
    r"\blop3\.[\w.]+\s+[^,]+,\s*(%\w+),\s*\1,":
        "ptxas 13.0 merges it wrongly with what follows, above level 0, where its first two "
        "sources are one register",
    r"\bsub\.[\w.]*f64\s+[^;]*,\s*0d[7fF][fF][fF](?!0{13})":
        "ptxas 13.0 turns the sign of a constant NaN that is subtracted; PTX promises any NaN",
    r"(?s)\b(?:neg\.s32|sub\.s32\s+[^,;]+,\s*0,).*\b(?:min|max)\.s32\b.*\b(?:min|max)\.s32\b":
        "ptxas 13.0 forgets a sign where it makes one instruction of two, above level 0",
    r"(?s)@!?(%p\d+) bra\b.*\bsetp\.[\w.]+\s+\1\b[^;]*,\s*!?\1;":
        "ptxas 13.0 takes a predicate for what a branch has shown it to be, above level 0, in "
        "later rounds of a loop, too",
    r"\bst\.[\w.:]*\.v[24]\.[bsu]16\s[^;]*%r\d":
        "ptxas 13.0 packs 16-bit elements in a register that is still read, above level 0",
    r"\bset\.[\w.]+\.f16\.f16\b":
        "ptxas 13.0 takes the result for 1 where an integer instruction reads it, above level 0",
    r"(?s)\.b?f16\b.*\bst\.[\w.]*[usb]8\s[^;]*%[rh]s?\d|\bst\.[\w.]*[usb]8\s[^;]*%[rh]s?\d.*\.b?f16\b":
        "ptxas 13.0 stores a register that holds a 16-bit float in a byte as the nearest integer",
    r"(?s)(?:\badd\.s64\s+(%rd\d+),\s*%rd\d+,\s*-?\d+;\s*shr\.[su]64\s+%rd\d+,\s*\1,\s*32;.*){2}":
        "ptxas 13.0 takes one high half for another, above level 0, where 64-bit products that "
        "constants are added to lose their low halves",
    r"(?s)\bpragma\s+\"nounroll\".*\batom\.shared\.(?:and|or|xor|min|max|inc|dec)\.[bsu]64\b.*\bbar\.sync\b":
        "ptxas 13.0 makes one loop, above level 0, of a loop that is not unrolled and the one that "
        "tries an atomic of shared memory again: lanes are at a barrier while others still try",
}  # fmt: skip
"""What a program for a GPU is without, and why: docs/measured.md has the readings."""


def kernel_of(number: int, seed: int) -> Launch | None:
    """The launch of one program, every third of them CUDA C++; ``None`` if a GPU may differ."""
    entry, own = f"k{number}", seed + number
    small = number % 4 != 0
    if number % 3:
        launch = ptx_statements.draw(own, entry, small).launch()
    else:
        # Without contraction: what the compiler fuses it has fused, and the driver fuses no more.
        launch = cuda_program.draw(own, entry, small).launch("device", ("-fmad=false",))
    return None if any(re.search(pattern, launch.ptx) for pattern in OPEN) else launch


def piece(launch: Launch) -> str:
    """A program's own text, without header and line information, its names made unique."""
    header = r"^\s*\.(?:version|target|address_size|file|loc)\b.*$"
    text = re.sub(header, "", launch.ptx, flags=re.M)
    text = re.sub(r"^\s*//.*$", "", text, flags=re.M)
    text = re.sub(r"^\s*\.section\b.*?^\s*\}", "", text, flags=re.M | re.S)
    for name in set(VARIABLE.findall(text)):
        text = re.sub(rf"(?<![\w$]){re.escape(name)}(?![\w$])", f"{launch.entry}_{name}", text)
    return re.sub(r"\n\s*\n+", "\n", text)
