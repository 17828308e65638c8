"""Runs cases on the simulator, and on a GPU where there is one, and compares with their models.

Cases with operands of the same types share a kernel, which loads each operand once. It is
launched several times: with operands that differ from thread to thread, only in some
threads after a branch, and in mixtures of what is one number, one a thread or one a block:
a register's array has these shapes, and where all is one number NumPy computes on scalars.
"""

import itertools
import random
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

import device
import simulator
from kernels import Kernel
from tests.simulator.isa.cases import (
    SCRATCH,
    WIDTH,
    Batch,
    decode,
    expected,
    moved,
    register,
    result_register,
    right,
    rows_of,
)  # fmt: skip

MACHINES = [simulator] + ([device] if device.available()[0] else [])


def kernel(lines: Iterable[str], pointers: int, before: str = "", words: int = 0,
           target: int = 90) -> Kernel:  # fmt: skip
    """An entry ``k`` around some lines.

    Its parameters are ``p0``, ``p1`` ... of 64 bits and ``w0``, ``w1`` ... of 32.
    """
    params = [f".param .u64 p{i}" for i in range(pointers)]
    params += [f".param .u32 w{i}" for i in range(words)]
    version, name = ("8.6", f"sm_{target}") if target <= 90 else ("8.8", f"sm_{target}a")
    header = f".version {version}\n.target {name}\n.address_size 64\n"
    body = "\n".join(lines)
    return Kernel.from_ptx(
        f"{header}{before}\n.visible .entry k({', '.join(params)})\n{{\n{body}\n}}\n", "k"
    )


# Where an operand comes from: its row is that of the thread of the grid, of the thread of the
# block, of the block, or the same for all.
EACH, THREAD, BLOCK, ONE = range(4)
_INDEX = ("%each", "%tid.x", "%ctaid.x", "%one")


def build(batch: Batch, room: int, mixed: bool) -> Kernel:
    """A kernel that loads operands, runs the cases and stores operands and results.

    Its parameters: a pointer an operand and one for what is stored (eight bytes each); an
    operand's place; the row of what is the same for all; and which threads leave before the
    cases, as a mask of bits of their number. Unless ``mixed``, each row is the thread's.
    """
    ins = batch[0].ins
    stored = [(kind, f"%v{i}") for i, kind in enumerate(ins)]
    lines = [
        f"{SCRATCH} .reg .pred %is; .reg .b32 %each, %one, %at, %n; .reg .b64 %from, %to;",
        "mov.u32 %each, %tid.x; mov.u32 %at, %ctaid.x; mov.u32 %n, %ntid.x;",
        f"mad.lo.u32 %each, %at, %n, %each; ld.param.u32 %one, [w{len(ins)}];",
    ]
    for i, kind in enumerate(ins):
        size, target = moved(register(kind)), "%n" if kind == "pred" else f"%v{i}"
        lines.append(f".reg .{register(kind)} %v{i}; ld.param.u32 %n, [w{i}];")
        lines += [] if mixed else ["mov.u32 %at, %each;"]
        for place, index in enumerate(_INDEX if mixed else ()):
            skip = f"SKIP{i}_{place}"
            lines.append(f"setp.ne.u32 %is, %n, {place}; @%is bra {skip}; mov.u32 %at, {index};")
            lines.append(f"{skip}:")
        lines += [
            f"ld.param.u64 %from, [p{i}]; mul.wide.u32 %to, %at, {WIDTH[size] // 8};",
            f"add.u64 %from, %from, %to; ld.global.{size} {target}, [%from];",
        ]
        if kind == "pred":
            lines.append(f"setp.ne.u32 %v{i}, %n, 0;")
    codes = []
    for number, case in enumerate(batch):
        names = {f"v{i}": f"%v{i}" for i in range(len(ins))}
        for i, kind in enumerate(case.out):
            names[f"o{i}"] = name = f"%c{number}_{i}"
            held = result_register(kind)
            zero = (
                "setp.ne.u32 {}, %n, %n;" if kind == "pred" else f"mov.{held} {{}}, {_ZERO[held]};"
            )
            lines.append(f".reg .{held} {name}; {zero.format(name)}")
            stored.append((kind, name))
        codes.append(case.statements.format(**names))
    lines += [
        f"ld.param.u32 %n, [w{len(ins) + 1}]; setp.eq.u32 %is, %n, 0; @%is bra ALL;",
        "and.b32 %n, %n, %each; setp.ne.u32 %is, %n, 0; @%is bra DONE;",
        "ALL:", *codes, "DONE:",
        f"ld.param.u64 %to, [p{len(ins)}]; mad.wide.u32 %to, %each, 8, %to;",
    ]  # fmt: skip
    for slot, (kind, name) in enumerate(stored):
        if kind == "pred":
            lines.append(f"selp.u32 %n, 1, 0, {name};")
            name = "%n"
        held = register(kind) if slot < len(ins) else result_register(kind)
        lines.append(f"st.global.{moved(held)} [%to+{8 * room * slot}], {name};")
    return kernel([*lines, "ret;"], len(ins) + 1, words=len(ins) + 2, target=batch[0].target)


_ZERO = {"b16": "0", "b32": "0", "b64": "0", "f32": "0f00000000", "f64": "0d0000000000000000"}


class Form(NamedTuple):
    """A launch: where operands come from, its size, which threads leave."""

    places: tuple[int, ...]
    grid: int
    block: int
    one: int = 0
    leaving: int = 0

    def rows(self, decoded: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Each thread's operands."""
        found = []
        for block, thread in itertools.product(range(self.grid), range(self.block)):
            number = {EACH: block * self.block + thread, THREAD: thread, BLOCK: block,
                      ONE: self.one}  # fmt: skip
            found.append(tuple(decoded[number[p]][i] for i, p in enumerate(self.places)))
        return found


_BLOCK = 64


def forms(batch: Batch) -> list[Form]:
    """The launches after the first: apart after a branch, one number each, and some mixtures."""
    arity = len(batch[0].ins)
    made = [Form((EACH,) * arity, 1, _BLOCK, leaving=1)]
    made += [Form((ONE,) * arity, 1, 2, one=row) for row in range(2)]
    mixtures = list(itertools.product((EACH, THREAD, BLOCK, ONE), repeat=arity))[1:-1]
    random.Random(str(batch)).shuffle(mixtures)
    return made + [Form(m, 3, 5) for m in mixtures[:8]]


class Runner:
    """A batch's kernel and operands; ``on_device``: whether a GPU is held to the models, too."""

    on_device = True

    def __init__(self, batch: Batch, mixed: bool = False) -> None:
        self.batch, self.ins = batch, batch[0].ins
        self.rows = rows_of(batch)
        self.count = -(-len(self.rows) // _BLOCK) * _BLOCK
        self.padded = list(itertools.islice(itertools.cycle(self.rows), self.count))
        self.decoded = [tuple(map(decode, self.ins, row)) for row in self.padded]
        self.kernel = build(batch, self.count, mixed)
        self.inputs = []
        for kind, column in zip(self.ins, zip(*self.padded, strict=True), strict=bool(self.ins)):
            # 8-bit operands lie below bits that must not matter.
            bits = [v | 0xA700 for v in column] if WIDTH[kind] == 8 else column
            self.inputs.append(np.array(bits, f"u{WIDTH[moved(register(kind))] // 8}"))

    def check(self, form: Form | None = None) -> None:
        """Every machine gives the models' results, and leaves operands as they are.

        Args:
            form: How it is launched; by default with each row in a thread of its own.
        """
        form = form or Form((EACH,) * len(self.ins), self.count // _BLOCK, _BLOCK)
        rows = form.rows(self.decoded)
        stays = [not number & form.leaving for number in range(len(rows))]
        patterns = [form.rows(np.transpose(self.inputs))] if self.ins else []
        wanted = [list(map(int, c)) for p in patterns for c in zip(*p, strict=True)]
        for case in self.batch:
            columns = expected(case, rows)
            wanted += [[w if on else 0 for w, on in zip(c, stays, strict=True)] for c in columns]
        names = [f"operand {i}" for i in range(len(self.ins))]
        names += [str(case) for case in self.batch for _ in case.out]
        for machine in MACHINES:
            if machine is device and (self.batch[0].target > 90 or not self.on_device):
                continue
            out = np.zeros((len(wanted), self.count), np.uint64)
            options = {"checks": "none", "counters": "none"} if machine is simulator else {}
            arguments = [*self.inputs, out, *form.places, form.one, form.leaving]
            machine.launch(self.kernel, form.grid, form.block, arguments, **options)
            wrong = []
            for name, want, found in zip(names, wanted, out[:, : len(rows)].tolist(), strict=True):
                if want != found:
                    wrong += [
                        f"{name} of {row}: {g:#x}, not {hex(w) if isinstance(w, int) else w}"
                        for row, g, w in zip(rows, found, want, strict=True)
                        if not right(g, w)
                    ]
            assert not wrong, "\n".join([f"{len(wrong)}, {machine.__name__}, {form}", *wrong[:12]])


def check(batch: Batch, on_device: bool = True) -> None:
    """The cases on their operands, in every form; on a GPU as well, if there is one."""
    runner = Runner(batch, mixed=True)
    runner.on_device = on_device
    runner.check()
    for form in forms(batch):
        runner.check(form)
