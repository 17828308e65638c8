"""Reading what ncu and compute-sanitizer write, and the tables that are made of it."""

import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

import device
import simulator
from benchmarks import counters as counters_table
from benchmarks import sanitizer
from kernels import library
from tilescope.cli.errors import UserError
from tilescope.cli.main import main
from tilescope.cli.request import Request
from tilescope.commands.counters import command_words
from tilescope.gpu.ncu import LAUNCH, METRICS, Figure, figures, max_of, measure, parse
from tilescope.text.hardware import explanations, hardware

ROWS = ("smsp__inst_executed_op_shared_ld.sum", "launch__registers_per_thread")
CSV = f"""\
==PROF== Connected to process 17 (/usr/bin/python3)
==PROF== Disconnected from process 17
"ID","Process ID","Kernel Name","{ROWS[0]}","{ROWS[1]}","smsp__other.sum"
"","","","inst","register/thread","inst"
"0","17","tiled(float const*, float*)","16,384","34","n/a"
"""


def test_csv_is_read_with_separators_and_gaps() -> None:
    assert parse(CSV) == {ROWS[0]: 16384, ROWS[1]: 34}
    assert parse(CSV.replace('"16,384"', '"16384.000000"')) == {ROWS[0]: 16384, ROWS[1]: 34}
    second = CSV.splitlines()[-1].replace("16,384", "16,390")
    assert parse(CSV + second + "\n")[ROWS[0]] == 16384  # it does not vary: the first
    noisy = METRICS["shared_store.wavefronts"]
    several = (CSV + second + "\n").replace(ROWS[0], noisy)
    assert parse(several) == {noisy: 16384, max_of(noisy): 16390, ROWS[1]: 34}
    assert parse("==ERROR== nothing") == {}
    assert parse("") == {}


def fake_ncu(folder: Path, body: str) -> None:
    """An ncu on the PATH that does as it is told."""
    file = folder / "ncu"
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(file.stat().st_mode | stat.S_IEXEC)


LOG = 'while [ "$1" != --log-file ]; do shift; done; log=$2'


def test_what_ncu_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_ncu(tmp_path, f'echo "$@" > {tmp_path}/asked; {LOG}; cat > "$log" <<"END"\n{CSV}END')
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert measure(["matmul_tiled", "--size", "64"], 0) == {ROWS[0]: 16384, ROWS[1]: 34}
    asked = (tmp_path / "asked").read_text()
    assert "--clock-control none" in asked
    assert "--print-units base" in asked
    assert "-m tilescope _launch matmul_tiled --size 64 --launches 10 --jit-level 0" in asked
    assert all(metric in asked for metric in (*METRICS.values(), *LAUNCH))
    measure(["matmul_tiled"], None)
    assert "--jit-level" not in (tmp_path / "asked").read_text()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            f'{LOG}; echo "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission" > "$log"'
            "; exit 1",
            "ncu gave no counters: ERR_NVGPUCTRPERM - The user does not have permission - an",
        ),
        ('echo "error: no NVIDIA driver" >&2; exit 2', "ncu gave no counters: error: no NVIDIA"),
        ("exit 9", "ncu gave no counters: exit code 9, no output"),
    ],
)
def test_a_failing_ncu_is_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, words: str
) -> None:
    fake_ncu(tmp_path, body)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(UserError) as caught:
        measure(["matmul_tiled"], 0)
    assert str(caught.value).startswith(words)
    monkeypatch.setattr(device, "available", lambda index=0: (True, "Stand-in"))
    result = CliRunner().invoke(main, ["counters", "matmul_tiled", "--size", "16"])
    assert result.exit_code == 2
    assert result.stderr == f"error: {caught.value}\n"


def test_the_same_request_again() -> None:
    request = Request(
        "my.cu", ("k", "f32[4]", "-3"), grid="4,4", block="16", shared=7, seed=3, build="source",
        options=("-DA=1", "--use_fast_math"), arch="compute_80",
    )  # fmt: skip
    words = command_words(request)
    assert words[:4] == ["my.cu", "k", "f32[4]", "-3"]
    joined = " ".join(words[4:])
    for part in ("--grid 4,4", "--block 16", "--shared 7", "--seed 3", "--build source",
                 "--option -DA=1", "--option --use_fast_math", "--arch compute_80"):  # fmt: skip
        assert part in joined
    assert "--size" not in joined


def test_figures_and_their_explanations() -> None:
    entry = library.get("matmul_tiled")
    launch = entry.launch((64, 64, 64))
    run = simulator.launch(entry.kernel(), launch.grid, launch.block, launch.args, checks="none")
    level0 = {METRICS[figure.name]: figure.simulator for figure in figures(run.counters, {}, {})}
    found = figures(run.counters, level0, level0)
    assert all(figure.equal for figure in found)
    assert {figure.name for figure in found} >= {"global_load.sectors", "fma_f32"}
    assert "add_f32" not in {figure.name for figure in found}  # zero on all three
    assert explanations(found) == ["default: ptxas left all of these as they are"]
    loads = METRICS["shared_load.requests"]
    default = level0 | {loads: level0[loads] // 4}
    texts = explanations(figures(run.counters, level0, default))
    assert texts == [
        "default: ptxas merged neighbouring shared loads into wider ones, "
        f"{level0[loads]:,} requests became {level0[loads] // 4:,}"
    ]
    fma = METRICS["fma_f32"]
    changed = figures(run.counters, level0 | {fma: 7}, level0 | {fma: 7})
    assert not all(figure.equal for figure in changed)
    assert explanations(changed)[0].startswith("fma_f32 differs at level 0: the driver expands")
    waves = METRICS["shared_load.wavefronts"]
    (text,) = explanations(figures(run.counters, level0 | {max_of(waves): 99_999}, level0))[:1]
    assert text == (
        f"shared_load.wavefronts read {level0[waves]:,} to 99,999 at level 0, in 10 launches: "
        f"warps collide now and then, which the simulator's {level0[waves]:,} is without"
    )
    registers = dict.fromkeys(LAUNCH, 0) | {"launch__registers_per_thread": 34}
    text = hardware(run, changed, level0 | registers, level0, "NVIDIA H200")
    assert "NOT" in text
    assert "occupancy: not checked, ncu gave no register count" in text
    limits = {"blocks": 32, "registers": 6, "warps": 8, "shared_mem": 21}
    registers |= {f"launch__occupancy_limit_{name}": limit for name, limit in limits.items()}
    registers["launch__shared_mem_config_size"] = 65536
    text = hardware(run, found, level0 | registers, level0 | registers, "NVIDIA H200")
    assert text.count("equal to ncu's") == 2
    assert "shared memory 21" in text
    wrong = registers | {"launch__occupancy_limit_warps": 9}
    assert "warps 8 (ncu: 9)" in " ".join(hardware(run, found, wrong, wrong, "NVIDIA H200").split())
    assert "not in the table" in hardware(run, found, {}, {}, "NVIDIA Zeta")


def test_a_counter_that_this_gpu_lacks_is_no_difference() -> None:
    assert Figure("fma_f32", 3, None, None).equal
    assert not Figure("fma_f32", 3, 4, 3).equal


@pytest.mark.parametrize(
    ("ours", "most", "verdict"),
    [(1568, 1578, "~"), (1569, 1578, "="), (1568, None, "NOT"), (1500, 1578, "NOT"),
     (1570, 1578, "NOT")],
)  # fmt: skip
def test_what_varying_readings_settle(ours: int, most: int | None, verdict: str) -> None:
    """Collisions only add: a reading below ours contradicts it, one just above may not."""
    assert Figure("shared_store.wavefronts", ours, 1569, ours, most).verdict == verdict


# -- compute-sanitizer ------------------------------------------------------------------

MEMCHECK = """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at void no_guard<(bool)0>(const int *, int *, int)+0x70 in memory.cu:6
=========     by thread (50,0,0) in block (1,0,0)
========= Program hit CUDA_ERROR_LAUNCH_FAILED (error 719) due to "unspecified launch failure"
========= ERROR SUMMARY: 15 errors
"""
RACECHECK = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at void k()+0x100 in x.cu:3
=========     and Read access at void k()+0x1a0 in x.cu:5 [64 hazards]
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
ASSERTED = """========= COMPUTE-SANITIZER
========= Program hit CUDA_ERROR_ASSERT (error 710) due to "device-side assert triggered"
error: cuStreamSynchronize failed: CUDA_ERROR_ASSERT (device-side assert triggered)
========= ERROR SUMMARY: 1 error
"""
HARMLESS = """========= COMPUTE-SANITIZER
========= Program hit CUDA_ERROR_NOT_FOUND (error 500) due to "named symbol not found"
========= ERROR SUMMARY: 1 error
"""


@pytest.mark.parametrize(
    ("tool", "output", "code", "found", "text"),
    [
        ("memcheck", MEMCHECK, 2, True, "14: Invalid __global__ write of size 4 bytes"),
        ("memcheck", CLEAN, 0, False, "-"),
        ("memcheck", ASSERTED, 2, True, "assert"),
        ("memcheck", HARMLESS, 0, False, "-"),
        ("memcheck", "", None, False, "hangs, no report"),
        ("memcheck", "Killed", 9, False, "no summary (exit code 9)"),
        ("racecheck", RACECHECK, 0, True, "1 error, 0 warnings"),
        (
            "racecheck",
            "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)",
            0, False, "-",
        ),
        (
            "synccheck",
            "========= Barrier error detected. Divergent thread(s) in block.\n"
            "=========     at void k()+0x1\n",
            None, True, "Barrier error detected. Divergent thread(s) in block (hangs)",
        ),
        ("GPU alone", '{"elapsed_ms": 1}', 0, False, "ends"),
        ("GPU alone", "error: CUDA_ERROR_ILLEGAL_ADDRESS (x)", 2, True, "illegal address"),
        ("GPU alone", "", None, True, "hangs"),
    ],
)  # fmt: skip
def test_verdicts_are_read(
    tool: str, output: str, code: int | None, found: bool, text: str
) -> None:
    assert sanitizer.read(tool, output, code) == sanitizer.Result(found, text)


@pytest.mark.slow
def test_every_faulty_kernel_is_judged_and_found_without_a_gpu() -> None:
    names = sanitizer.faulty()
    assert len(names) == sum(bool(library.get(name).twin) for name in library.names())
    for name in ("faulty_shared_raw", "matmul_tiled_wrong_guard", "faulty_endless_wait"):
        assert name in names
        assert sanitizer.ours(name).found
    assert not sanitizer.ours("matmul_tiled").found


def test_a_run_that_does_not_end_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "compute-sanitizer"
    file.write_text("#!/bin/sh\necho '========= Barrier error detected'\nsleep 60\n")
    file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    output, code = sanitizer.on_gpu("faulty_endless_wait", "synccheck", "device", 0.5)
    assert code is None
    assert "Barrier error" in output


# -- tables -----------------------------------------------------------------------------


def test_sizes_that_every_kernel_takes() -> None:
    for name in counters_table.family("all"):
        entry = library.get(name)
        entry.launch(entry.parse_size(counters_table.size_of(name)))
    assert len(counters_table.family("matmul")) == 14


@pytest.mark.skipif(device.available()[0], reason="this machine has a GPU")
@pytest.mark.parametrize("name", ["gflops", "sanitizer", "counters"])
def test_without_a_gpu_the_benchmarks_say_so(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import importlib

    monkeypatch.setattr("sys.argv", [f"benchmarks.{name}"])
    assert importlib.import_module(f"benchmarks.{name}").main() == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"error: benchmarks.{name} needs a GPU: ")
