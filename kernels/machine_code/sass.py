"""Machine instructions, as far as how long they take goes: opcode, width, scoreboards, branches.

From sm_70 on an instruction has 128 bits: the opcode in the lowest twelve (three of which say
what kind of operands it has), and in bits 105 to 121 what the compiler tells the scheduler: how
many cycles to wait before the next one, and which of six scoreboards to set and to wait for (Z. Jia
and others: "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking", 2018, chapter 2).
The numbers of opcodes are read off ``nvdisasm`` (CUDA Binary Utilities).
"""

from dataclasses import dataclass

from .cubin import MachineCode

_FORMS = 0x1FF
_PIPES = {
    "fma": (0x020, 0x021, 0x023),  # FMUL FADD FFMA
    "imad": (0x024, 0x025, 0x026, 0x027),  # IMAD, .WIDE, .HI, IDP
    "alu_imad": (0x036,),  # VIADD, an addition that the multipliers do
    "half": (0x030, 0x031, 0x032, 0x034, 0x035),  # HADD2 HFMA2 HMUL2 HSETP2 HFMA2.MMA
    "fp64": (0x028, 0x029, 0x02A, 0x02B),  # DMUL DADD DSETP DFMA
    "tensor": (0x03C, 0x037, 0x03F, 0x03D, 0x1F0, 0x1DF, 0x1F1),
    "sfu": (  # MUFU POPC FLO BREV FCHK F2F F2I I2F FRND, 64-bit ones
        0x108, 0x109, 0x100, 0x101, 0x102, 0x104, 0x105, 0x106, 0x107, 0x110, 0x111, 0x112,
    ),
    "load_global": (0x181, 0x180, 0x1AE),  # LDG LD LDGSTS
    "store_global": (0x186, 0x185),  # STG ST
    "load_local": (0x183,),
    "store_local": (0x187,),
    "load_shared": (0x184, 0x03B),  # LDS LDSM
    "store_shared": (0x188, 0x044),  # STS STSM
    "atomic_global": (  # ATOMG ATOMG.CAS ATOM ATOM.CAS RED REDG, of floats
        0x1A8, 0x1A9, 0x1A3, 0x18A, 0x18B, 0x18E, 0x1A6,
    ),
    "atomic_shared": (0x18C, 0x18D),  # ATOMS ATOMS.CAS
    "shuffle": (0x189, 0x1A1, 0x1C4),  # SHFL MATCH REDUX
    "constant": (0x182, 0x0B9),  # LDC ULDC
    "special": (0x119, 0x1C3, 0x005),  # S2R S2UR CS2R
    "barrier": (0x11D,),
    "branch": (0x147, 0x14D, 0x145, 0x141, 0x144, 0x150, 0x149, 0x148, 0x146),
    "fence": (0x192, 0x1AB, 0x18F),
    "uniform": (0x082, 0x08C, 0x090, 0x091, 0x092, 0x096, 0x099, 0x0A4),  # once for a warp
    "copies_end": (0x1AF,),  # LDGDEPBAR: the asynchronous copies up to here are a group
    "copies_wait": (0x11A,),  # DEPBAR: until no more groups than so many are under way
    "none": (0x118,),
}  # fmt: skip
_PIPE = {opcode: pipe for pipe, opcodes in _PIPES.items() for opcode in opcodes}
"""By the opcode without its form; what is not here is integer or logic: ``alu``."""
_BRANCH, _EXIT, _RETURN = 0x147, 0x14D, 0x150
_IN_WORDS = 90
"""The architecture from which on a branch's offset is in words."""
_SIZES = (1, 1, 2, 2, 4, 8, 16, 16)
_MEMORY = ("load", "store", "atomic")


@dataclass(frozen=True)
class MachineInstruction:
    """One instruction.

    Attributes:
        pipe: Which unit executes it; ``alu`` where nothing else is known.
        width: Bytes a lane accesses; groups of copies that may stay under way; 0 of all else.
        line: Of the PTX text, from 1; 0 if it has none.
        stall: Cycles before the warp's next instruction.
        sets: Scoreboards that it sets until its result is there, and until its operands are read.
        waits: Scoreboards that it waits for.
        target: The instruction to which it branches; -1 if to none.
        is_terminator: Whether execution does not continue at the next instruction.
        leaves: Whether a warp may
            end at it.
        guarded: Whether lanes execute it under a predicate.
    """

    pipe: str
    width: int
    line: int
    stall: int
    sets: tuple[int, int]
    waits: tuple[int, ...]
    target: int
    is_terminator: bool
    leaves: bool
    guarded: bool


def instructions(code: MachineCode) -> list[MachineInstruction]:
    """Return the instructions of a kernel, without what fills it up behind its end."""
    found = []
    for number, ((low, high), line) in enumerate(zip(code.words, code.lines, strict=True)):
        opcode = low & _FORMS
        control = high >> 41
        pipe = _PIPE.get(opcode, "alu")
        access = pipe.startswith(_MEMORY)
        always = (low >> 12) & 15 == 7
        width = _SIZES[high >> 9 & 7] if access else 0
        if pipe == "copies_wait":
            width = low >> 38 & 63
        target = -1
        if opcode == _BRANCH:
            target = number + 1 + _offset(low, high, code.arch)
        found.append(
            MachineInstruction(
                pipe, width, line, control & 15,
                (control >> 5 & 7, control >> 8 & 7),
                tuple(b for b in range(6) if control >> 11 >> b & 1),
                target, always and opcode in (_EXIT, _BRANCH, _RETURN), opcode == _EXIT, not always,
            )
        )  # fmt: skip
    while found and (found[-1].pipe == "none" or found[-1].target == len(found) - 1):
        found.pop()
    return found


def _offset(low: int, high: int, arch: str) -> int:
    """Return the instructions between a branch and its target (bytes; words from sm_90 on)."""
    if int(arch.removeprefix("sm_").rstrip("a")) < _IN_WORDS:
        offset = low >> 32 | (high & 0x3FFFF) << 32
        return (offset - (offset >> 49 << 50)) // 16
    offset = (low >> 16 & 0xFF) | (low >> 34) << 8 | (high & 0x3FFFF) << 38
    return (offset - (offset >> 55 << 56)) // 4
