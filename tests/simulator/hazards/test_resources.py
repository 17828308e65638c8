"""``too-many-resources``: registers and shared memory that a GPU does not have for a block."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import simulator
from kernels import Kernel, library
from kernels.machine_code import cubin as made
from simulator.compile.compiler import compile_ptx
from simulator.gpus.table import find
from simulator.hazards import resources
from simulator.isa.memory.stack import STACK_BYTES
from tests.support.command_line import tilescope
from tilescope.cli.main import main

WIDE = """
__global__ void BOUNDS wide(const float* in, float* out, int n) {
    float kept[COUNT];
    for (int i = 0; i < COUNT; ++i) kept[i] = in[(threadIdx.x + 5 * i) % 512];
    for (int round = 0; round < n; ++round)
        for (int i = 0; i < COUNT; ++i) kept[i] = kept[i] * kept[(i + 29) % COUNT] + 1;
    float sum = 0;
    for (int i = 0; i < COUNT; ++i) sum += kept[i];
    out[threadIdx.x] = sum;
}"""
TILE = """__global__ void tile(float* out) {
    extern __shared__ float s[];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x ^ 1];
}"""


def wide(count: int = 100, bounds: str = "", **how: Any) -> Kernel:
    return Kernel.from_cuda(
        WIDE.replace("COUNT", str(count)).replace("BOUNDS", bounds), "wide", **how
    )


def launched(kernel: Kernel, threads: int, **how: Any) -> simulator.Run:
    args = [np.ones(512, np.float32), np.zeros(1024, np.float32), 1]
    return simulator.launch(kernel, 1, threads, args, **how)


def test_registers_of_a_block() -> None:
    """What is said is true: the most threads that fit do, one warp more does not."""
    (hazard,) = launched(wide(), 1024).hazards
    assert (hazard.kind, hazard.severity) == ("too-many-resources", "error")
    text = " ".join(str(hazard).split())
    taken, fit = (
        int(re.search(pattern, text)[1])
        for pattern in (r"of (\d+) registers do not fit on H200", r"at most (\d+) threads")
    )
    assert made.machine_code(wide()).registers == taken > 64
    assert "__launch_bounds__(1024)" in text
    assert "no more than 64 registers" in text
    assert hazard.lines == (2,)
    assert launched(wide(), fit).hazards == []
    (other,) = launched(wide(), fit + 32).hazards
    assert "__launch_bounds__(" + str(fit + 32) in " ".join(str(other).split())


@pytest.mark.slow_but("how0")
@pytest.mark.parametrize("how", [
    {"bounds": "__launch_bounds__(1024)"}, {"options": ("-maxrregcount=64",)}, {"count": 12},
])  # fmt: skip
def test_kernels_that_fit(how: dict[str, Any]) -> None:
    kernel = wide(**how)
    run = launched(kernel, 1024)
    assert run.hazards == []
    assert run.notes == ()
    assert made.machine_code(kernel).registers <= 64


def test_what_runs_on_a_gpu_is_the_device_build() -> None:
    assert launched(wide(build="source"), 1024).hazards == []


def test_what_is_not_asked_for() -> None:
    for how in ({"checks": "none"}, {"limits": "none"}):
        assert launched(wide(), 1024, **how).hazards == []


def test_ptx_is_looked_at_where_machine_code_can_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    ptx = Kernel.from_ptx(wide().ptx)
    assert [h.kind for h in launched(ptx, 1024).hazards] == ["too-many-resources"]
    monkeypatch.setattr(made, "_MADE", {})
    monkeypatch.setenv("TILESCOPE_CACHE", "off")
    monkeypatch.setattr(made, "_from_ptx", lambda *_: None)
    run = launched(ptx, 1024)
    assert run.hazards == []
    (note,) = run.notes
    assert note.startswith("not checked: whether H200 SXM has the registers for a block")


@pytest.mark.slow
def test_a_refusal_by_the_compiler_is_said() -> None:
    """Of an instruction that an older GPU does not have."""
    asm = 'asm volatile("barrier.cluster.arrive;\\n barrier.cluster.wait;"); float sum = 0;'
    text = WIDE.replace("COUNT", "100").replace("BOUNDS", "").replace("float sum = 0;", asm)
    run = launched(Kernel.from_cuda(text, "wide"), 1024, limits="a100")
    assert run.hazards == []
    (note,) = run.notes
    assert note.startswith("not checked: whether A100")


def test_shared_memory_of_the_gpu_that_is_named() -> None:
    kernel = Kernel.from_cuda(TILE, "tile")
    for gpu, fits in (("a100", 166_912), ("l4", 101_376), (find("h100"), 232_448)):
        for more in (0, 1):
            out = np.zeros(32, np.float32)
            try:
                run = simulator.launch(kernel, 1, 32, [out], shared_bytes=fits + more, limits=gpu)
            except simulator.LaunchError:  # more than the simulated GPU has
                assert (fits, more) == (232_448, 1)
                continue
            assert [h.kind for h in run.hazards] == ["too-many-resources"] * more
            assert out[:4].tolist() == [1, 0, 3, 2]
            if more:
                assert f"{fits:,}" in str(run.hazards[0])


def test_registers_are_kept_on_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Not for another architecture than the PTX's: its text may then be another one."""
    monkeypatch.setenv("TILESCOPE_CACHE", str(tmp_path))
    kernel, again = wide(40), wide(40, options=("-maxrregcount=40",))
    counts = [made.registers(kernel), made.registers(again)]
    assert counts == [made.machine_code(kernel).registers, made.machine_code(again).registers]
    assert counts[0] > counts[1]
    monkeypatch.setattr(made, "_MADE", {})
    monkeypatch.setattr(made, "_make", lambda *_: None)
    assert [made.registers(kernel), made.registers(again)] == counts
    assert made.registers(kernel, "8.0") is None
    for file in tmp_path.glob("*.json"):
        file.write_text('{"registers": "many"}')
    assert made.registers(kernel) is None


def test_machine_code_is_made_only_where_it_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(resources, "registers", lambda kernel, _: asked.append(kernel.name))
    launched(wide(), 256)
    launched(wide(12), 1024)
    launched(wide(bounds="__launch_bounds__(1024)"), 1024)
    assert asked == []
    launched(wide(), 288)
    assert asked == ["wide"]


@pytest.mark.slow_but("sort_bitonic")
@pytest.mark.parametrize("name", [
    "matmul_register_tiled", "softmax_rows", "sort_bitonic", "convolution",
])  # fmt: skip
def test_no_compiler_takes_more_than_is_allowed_for(name: str) -> None:
    """Less than twice the registers that are live, and some to spare."""
    kernel = library.get(name).kernel()
    live = resources._live(compile_ptx(kernel.ptx, kernel.entry, 0, STACK_BYTES))
    registers = made.machine_code(kernel).registers
    assert live is not None
    assert live / 2 < registers <= 2 * live + 24


@pytest.mark.slow_but("check")
@pytest.mark.parametrize("command", ["check", "run", "predict"])
def test_commands_say_it(command: str, tmp_path: Path) -> None:
    file = tmp_path / "wide.cu"
    file.write_text(WIDE.replace("COUNT", "100").replace("BOUNDS", ""))
    given = ("wide", "--grid", 1, "--block", 1024, "f32[512]=ones", "f32[1024]", 1)
    result = tilescope(command, file, *given)
    said = " ".join((result.output).split())
    assert result.exit_code == (2 if command == "predict" else 1)
    assert "1,024 threads of" in said
    assert "__launch_bounds__(1024)" in said


NUMBA = """\
import numpy as np
from numba import cuda

def many(x, y):
    t = cuda.threadIdx.x
{loads}
    y[t] = {sum}

x, y = np.ones(512), np.zeros(1024)
cuda.jit({bounds})(many)[1, 1024](x, y)
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_scripts_are_told_what_numba_calls_it(tmp_path: Path) -> None:
    pytest.importorskip("numba_cuda", reason="the extra numba")
    names = [f"v{i}" for i in range(60)]
    loads = "\n".join(f"    {v} = x[(t + {5 * i}) % 512]" for i, v in enumerate(names))
    sums = " + ".join(f"{v} * {w}" for v, w in zip(names, reversed(names), strict=True))
    file = tmp_path / "script.py"
    for bounds, code in (("", 1), ("launch_bounds=1024", 0)):
        file.write_text(NUMBA.format(loads=loads, sum=sums, bounds=bounds))
        result = CliRunner().invoke(main, ["exec", str(file)])
        assert result.exit_code == code, result.output
        said = " ".join(result.output.split())
        assert ("@cuda.jit(launch_bounds=1024), for which" in said) == bool(code)
    old = CliRunner().invoke(main, ["exec", "--gpu", "nothing", str(file)])
    assert old.exit_code == 2


@pytest.mark.parametrize("command", ["check", "run"])
def test_commands_take_the_gpu_that_is_named(command: str, tmp_path: Path) -> None:
    file = tmp_path / "tile.cu"
    file.write_text(TILE)
    given = ("tile", "--grid", 1, "--block", 32, "--shared", 110_000, "f32[32]")
    assert tilescope(command, file, *given).exit_code == 0
    result = tilescope(command, file, *given, "--gpu", "l4")
    assert result.exit_code == 1
    assert "which has 101,376 for one" in " ".join(result.output.split())
    assert tilescope(command, file, *given, "--gpu", "l5").exit_code == 2
