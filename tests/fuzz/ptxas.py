"""ptxas as a judge: which lines of PTX it refuses. It needs no GPU."""

import functools
import importlib.metadata
import re
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

_SAID = re.compile(r"^ptxas .*?, line (\d+); (?:error|fatal)\s*: (.*)$")
_ADDRESS = re.compile(r"uses \d+-bit address on line '(\d+)'")
QUIRKS: dict[str, str] = {
    r"^prefetch\.param": "the net's parameter is one of a call: ptxas wants a kernel's",
    r"movmatrix\S* .*(%pred|0f|\+4)":
        "ptxas takes a predicate or a constant for a part of a matrix",
    r"^(?!istypep)\S*\.(tex|sampler|surf)ref": "ptxas ignores a kind of object; PTX has none there",
    r"^(ldmatrix|stmatrix|prefetch\.tensormap|createpolicy)(?!\S*shared).*\[%\w32_":
        "ptxas takes 32 bits for a generic address; PTX has 64",
    r"^cvt\.pack.*%\w64_": "ptxas takes 64 bits for 32; no manual says which",
    r"^(?!setp(?!\S*\.bf16 )|shfl|match\.all).*\w\|_":
        "ptxas takes '_' for a second result of any instruction",
    r"\.(finite|infinite|number|notanumber|normal|subnormal)\b":
        "ptxas ignores a property of testp in any instruction; PTX has none there",
    r"^(?!ld|st|mov).*\{": "ptxas takes values in braces; no manual says what they mean",
    r"^cvt\.\S*ue8m0x2\.bf16x2 .*0f":
        "ptxas takes a float for a pair of halves; no manual says which",
    r"\.f32x2\.": "ptxas ignores a second type of a pair",
    r"^(?!w?g?mma).*%f16x2_": "ptxas lets registers of .f16x2 stand for integers and predicates",
    r"^mma\.sp\S*\.(bf16|tf32)": "ptxas takes any 32 bits for these; PTX has .b32 and .f32",
    r"^atom\.(?!\S*(cas|hint)).*\](,[^,]*){2};": "ptxas takes a third source, which nothing reads",
    r"^set\.\S*bf16": "ptxas takes registers of other types for set on .bf16",
    r"^bar(rier)?\S*\.(any|all)": "ptxas ignores a mode of vote at a barrier",
    r"^(add|sub|mad)c?\S*\.sat": "ptxas ignores .sat beside a carry; PTX has none there",
    r"^fma\.\S*r[zmp]\S*\.bf16": "ptxas takes any rounding; PTX has .rn alone",
    r"^rcp\.\S*ftz\S*\.f64": "ptxas ignores .ftz; PTX has it for .f32 alone",
    r"^(mapa|getctarank)\S*\.s(32|64)": "ptxas takes signed types; PTX has .u32 and .u64",
    r"^(mapa|getctarank)\.u64 [^,]*, sv":
        "ptxas takes a variable of shared memory for a generic address",
    r"^(st|red)\.async(?!\S*::cluster\.(mb|v))|^(st|red)\.async\S* (?!\[\S*, [^\[{]*, \[)":
        "ptxas takes the parts of a store to another block in other orders and numbers",
    r"^st\.async\S*\.(weak|cluster)\b.*\{|^st\.async.*0xF": "ptxas takes a vector for one value",
    r"^txq\S*memory_layout": "ptxas takes the query of a surface for a texture",
    r"^red\S* _,": "ptxas takes '_' for a result that there is none",
    r"^cp\S*prefetch\S*(cache_hint\.global|global\.L2[ .])":
        "ptxas takes the parts of a prefetch in another order",
    r"^istypep\S* .*, (-?\d\w*|WARP_SZ);":
        "ptxas takes a number for a handle; PTX wants a register",
    r"^cp\S*complete_tx\S* (\[[^\]]*\], ){2}[^,]+, [^\[]":
        "ptxas takes a number for the address of an mbarrier; PTX has brackets around it",
    r"^fence\.\S+\.mbarrier_init": "ptxas takes the parts of the fence in another order",
    r"^(ld|st|mov)matrix\S*\.(row|col)\b": "ptxas ignores an order of mma; PTX has none there",
    r"^cp\.(reduce\.)?async\.bulk\S*bulk_group\.shared":
        "ptxas takes the parts of a copy in another order",
    r"^fence\S*sync_restrict": "ptxas ignores a part of another fence",
    r"^mma\S*\.([bfsu]|tf|bf|e)\d\S*\.(row|col)|^mma\S*\.popc\.|^mma\.(?!sp)\S*\.sp":
        "ptxas takes the parts of mma in another order; PTX has one",
    r"^cp\.async\.(c|bulk\.shared)\S* \[[^\]]*\], \[%\w32_"
    r"|^cp\.(reduce\.)?async\.bulk\.(prefetch\.L2\.)?global\S* \[%\w32_":
        "ptxas takes 32 bits for an address in global memory",
    r"^cvt\S*\.ue8m0x2.*%f32_": "ptxas takes the register of a float for a pair",
    r"^(add|sub|fma)\.\S*f32\.bf16 [^,]*,.* -?(0x|\d|WARP_SZ)(?!f)":
        "ptxas takes a whole number, whose bits are a .bf16's; PTX has a register",
    r"^st\.async\S*\.v\d\.\w+ \[[^\]]*\], [^{]": "ptxas takes one value for a vector",
    r"^mapa\S* ([^,]*, ){2}\w+\+\d": "ptxas takes a variable's address for a block's number",
    r"^setp\.\S*\.bf16x2 .*, !?%pred_\d;": "ptxas takes a predicate for a pair",
    r"\{[^}]*%pred": "ptxas takes a predicate for a value in braces",
    r"^testp\.(f32|f64) ": "ptxas asks for no property; PTX does",
}  # fmt: skip
"""Instructions that ptxas accepts and we call wrong, and why."""
NOT_YET: dict[str, str] = {
    r"an address in a register of \d+ bits": "no compiler makes one: addresses have 32 or 64",
    r"an address in a narrow register": "no compiler makes one",
    r"\b128.bit": "a constant in 128 bits, or one of them in less: no compiler makes one",
    r"brx.*\(a guard:": "no compiler makes one",
    r"such a member mask": "the address of a variable as a mask",
    r"isspacep.*a register narrower than .b64": "generic addresses have 64 bits",
}
"""Refusals of what ptxas accepts that no row gives: what the message says, and why."""


@functools.cache
def path() -> Path | None:
    """The program of the wheel ``nvidia-cuda-nvcc``, if that is installed."""
    try:
        files = importlib.metadata.files("nvidia-cuda-nvcc") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    found = next((f for f in files if f.name in ("ptxas", "ptxas.exe")), None)
    return Path(str(found.locate())) if found else None


def accepts(text: str, target: str) -> bool:
    """Whether it takes a whole module."""
    return _run(text, target)[0] == 0


def initialised(text: str, target: str) -> bytes | None:
    """What the module's global memory begins with, out of the program; ``None``: it is refused."""
    kept: list[bytes] = []
    code, _ = _run(text, target, kept)
    return _section(kept[0], ".nv.global.init") if not code else None


def assembled(text: str, target: str) -> bytes:
    """The machine code of a module, at level 0.

    Raises:
        ValueError: ptxas refuses it.
    """
    kept: list[bytes] = []
    code, said = _run(text, target, kept)
    if code:
        raise ValueError(said)
    return kept[0]


def _section(elf: bytes, name: str) -> bytes:
    """A section of a 64-bit ELF file (System V ABI, "Sections")."""
    (start,) = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", elf, start + i * size) for i in range(count)]
    for header in headers:
        at = headers[names][4] + header[0]
        if elf[at : at + len(name) + 1] == name.encode() + b"\0":
            return elf[header[4] : header[4] + header[5]]
    raise KeyError(name)


def _run(text: str, target: str, keep: list[bytes] | None = None) -> tuple[int, str]:
    program = path()
    assert program, "needs the wheel nvidia-cuda-nvcc"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "text.ptx"
        source.write_text(text)
        command = [str(program), f"-arch={target}", "-O0", str(source), "-o", f"{folder}/out"]
        try:
            limit = _LONGEST + text.count("\n") / 30
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            return 1, ""
        if keep is not None and not done.returncode:
            keep.append((Path(folder) / "out").read_bytes())
    return done.returncode, done.stdout + done.stderr


def refused(head: str, lines: Sequence[str], tail: str, target: str) -> dict[int, str]:
    """What ptxas says against lines that stand between a head and a tail, by their numbers.

    ptxas stops reading at a syntax error, and looks at some things only where all else is
    right: what it has refused is taken out, until nothing is.
    """
    first = head.count("\n") + 1
    found: dict[int, str] = {}
    rest = list(lines)
    while True:
        code, said = _run(head + "\n".join(rest) + "\n" + tail, target)
        if not code:
            return found
        against: dict[int, str] = {}
        for line in said.splitlines():
            m = _SAID.match(line)
            address = _ADDRESS.search(line)
            if m:
                against.setdefault(int(m[1]) - first, m[2])
            elif address:
                against.setdefault(int(address[1]) - first, "a 32-bit address")
        syntax = {i: why for i, why in against.items() if "syntax" in why.lower()}
        news = {i: why for i, why in (syntax or against).items() if 0 <= i < len(rest) and rest[i]}
        if not news:
            return found | _unsaid(head, rest, tail, target)
        for i, why in news.items():
            found[i], rest[i] = CRASHED if "Internal compiler error" in why else why, ""


_LONGEST = 10
"""Seconds after which it is taken to hang, and one more for 30 lines: it does on a predicate for
the address of a copy in bulk."""
CRASHED = "ptxas fails"
"""Said of a line on which ptxas crashes, or stops without a word."""


def of_its_own(said: str, opcode: str) -> bool:
    """Whether it speaks of an instruction that it has made of another one."""
    named = re.search(r"for instruction '_?(\w+)", said)
    return bool(named) and named[1] != re.split(r"\W", opcode)[0]


def _unsaid(head: str, lines: list[str], tail: str, target: str) -> dict[int, str]:
    """Find the lines on which ptxas fails without naming one."""
    places = [i for i, line in enumerate(lines) if line]
    if len(places) <= 1:
        return dict.fromkeys(places, CRASHED)
    found: dict[int, str] = {}
    for half in (places[: len(places) // 2], places[len(places) // 2 :]):
        part = refused(head, [lines[i] for i in half], tail, target)
        found |= {half[i]: why for i, why in part.items()}
    return found
