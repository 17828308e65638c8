"""``mma.sp``: a matrix A of which half is there, against a slow model and on a GPU."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import simulator
from tests.simulator.isa import tensor_cases as tensors
from tests.simulator.isa import tensor_model as model
from tests.simulator.isa.harness import MACHINES
from tests.simulator.isa.tensor_cases import BITS, KINDS, elements, packed, unpacked


@dataclass(frozen=True)
class Case(tensors.Case):
    """One variant; ``selector``: which lanes of four have the places."""

    selector: int = 0

    @property
    def kept(self) -> tensors.Case:
        """The dense product whose A has as many elements."""
        m, n, k = self.shape
        return tensors.Case(self.name.replace(f"m{m}n{n}k{k}", f"m{m}n{n}k{k // 2}"))

    def places(self) -> dict[str, tuple[int, tensors.Place]]:
        return super().places() | {"a": self.kept.places()["a"]}

    @property
    def code(self) -> str:
        return super().code.replace(";", f", %e, {self.selector};")

    @property
    def plain(self) -> str:
        return f".reg .b32 %e; {super().plain}"

    def sparse(self, pairs: list[tuple[int, int]], c: int) -> int:
        """One output of the products that there are."""
        out, kind, _, _ = self.types
        if kind in model.F8 or out == "s32":
            return self.element(pairs, c)
        return model.summed(kind, pairs, out, c, 25)


CASES = tuple(
    Case(f"mma.{sparse}.sync.aligned.{name}", selector)
    for sparse, name, selector in (
        ("sp::ordered_metadata", "m16n8k16.row.col.f32.f16.f16.f32", 0),
        ("sp", "m16n8k16.row.col.f16.f16.f16.f16", 3),
        ("sp::ordered_metadata", "m16n8k16.row.col.f32.bf16.bf16.f32", 2),
        ("sp::ordered_metadata", "m16n8k32.row.col.f32.f16.f16.f32", 1),
        ("sp", "m16n8k32.row.col.f16.f16.f16.f16", 0),
        ("sp", "m16n8k32.row.col.f32.bf16.bf16.f32", 1),
        ("sp::ordered_metadata", "m16n8k8.row.col.f32.tf32.tf32.f32", 1),
        ("sp", "m16n8k16.row.col.f32.tf32.tf32.f32", 1),
        ("sp::ordered_metadata", "m16n8k64.row.col.f32.e4m3.e5m2.f32", 0),
        ("sp", "m16n8k64.row.col.f32.e5m2.e4m3.f32", 0),
        ("sp::ordered_metadata", "m16n8k32.row.col.s32.s8.u8.s32", 1),
        ("sp::ordered_metadata", "m16n8k64.row.col.satfinite.s32.u8.s8.s32", 0),
    )
)


def places(rng: np.random.Generator, case: Case) -> Any:
    """Two of each four places along K, or one of each two, by row."""
    k, pair = case.shape[2], case.types[1] == "tf32"
    if pair:
        return rng.integers(0, 2, (16, k // 2)) + 2 * np.arange(k // 2)
    found = np.argsort(rng.random((16, k // 4, 4)), axis=2)[:, :, :2]
    return (np.sort(found, axis=2) + 4 * np.arange(k // 4)[:, None]).reshape(16, -1)


def metadata(rng: np.random.Generator, case: Case, where: Any) -> Any:
    """The lanes' words: in those that the selector does not name, anything."""
    words = rng.integers(0, 1 << 32, 32, np.uint64)
    size = 4 if case.types[1] == "tf32" else 2
    code = (where % 2 * 10 + 4) if size == 4 else where % 4
    kept = where.shape[1]
    half = 16 // size
    across = 1 if kept * size <= 16 else 2
    for row, i in np.ndindex(where.shape):
        high = row // 8
        if BITS[case.types[1]] == 8:
            lane, at = high + i // 16 * 2, i % 16
        else:
            lane, at = i // half, i % half + half * high
        lane += row % 8 * 4 + case.selector * across
        mask = ((1 << size) - 1) << (size * at)
        words[lane] = int(words[lane]) & ~mask | int(code[row, i]) << (size * at)
    return words


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_equals_the_model(case: Case) -> None:
    rng = np.random.default_rng(5)
    (m, n, k), (_, a, b, c) = case.shape, case.types
    shapes = {"a": (m, k // 2), "b": (n, k), "c": (m, n)}
    matrices = {
        name: np.array([elements(rng, kind, data, shapes[name], name == "c") for data in KINDS])
        for name, kind in zip("abc", (a, b, c), strict=True)
    }
    where = [places(rng, case) for _ in KINDS]
    arrays = [
        packed(matrices[name], *case.places()[name], BITS[kind], 1)
        for name, kind in zip("abc", (a, b, c), strict=True)
    ]
    words = np.concatenate([metadata(rng, case, each) for each in where]).astype(np.uint32)
    arrays[0] = np.concatenate([arrays[0], words[None]])
    threads = 32 * len(KINDS)
    at = case.places()["a"][0] * threads * 4
    before = ".reg .b32 %e; ld.param.u64 %p, [p0]; mad.wide.u32 %p, %t, 4, %p;"
    made = tensors.program(case, threads, f"{before} ld.global.b32 %e, [%p+{at}];")
    count, place = case.places()["d"]
    wanted = np.zeros((len(KINDS), m, n), np.uint64)
    for warp, row, column in np.ndindex(wanted.shape):
        left, right = matrices["a"][warp, row].tolist(), matrices["b"][warp, column]
        pairs = list(zip(left, right[where[warp][row]].tolist(), strict=True))
        wanted[warp, row, column] = case.sparse(pairs, int(matrices["c"][warp, row, column]))
    for machine in MACHINES:
        out = np.zeros((count, threads), np.uint32)
        run = machine.launch(made, 1, threads, [*arrays, out])
        found = unpacked(out, place, BITS[case.types[0]], wanted, 1)
        assert not tensors.wrong(found, wanted)[:5], machine.__name__
        if machine is simulator:
            assert run.counters.flops == (0 if a[1:] == "8" else m * n * k * len(KINDS))
