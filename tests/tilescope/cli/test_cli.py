"""The command line: reports, arguments, exit codes, and errors in one line."""

import itertools
import json
import re
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner

import simulator
from kernels import library
from tests.support.command_line import SCALE, SCALE_ARGS, error_of, flat, tilescope
from tilescope.cli.main import main


@pytest.fixture
def scale(tmp_path: Path) -> Path:
    """A user's own file with two kernels."""
    file = tmp_path / "scale.cu"
    file.write_text(SCALE)
    return file


# -- reports ----------------------------------------------------------------------------


def test_list_has_the_clean_kernels_and_folds_the_faulty_ones() -> None:
    def shown(*words: str) -> tuple[list[str], str]:
        result = tilescope("list", *words)
        assert result.exit_code == 0
        *rows, last = result.stdout.splitlines()
        return [row.split()[0] for row in rows if row and row[0] != " "], last

    (clean, rest), (faulty, last) = shown(), shown("--faulty")
    faulty.append(last.split()[0])
    assert [name for name in library.names() if name in clean] == clean
    assert sorted(clean + faulty) == sorted(library.names())
    assert f"and {len(faulty)} with a fault" in rest
    assert {"matmul_tiled", "softmax_rows"} <= set(clean)
    assert {"matmul_missing_first_barrier", "faulty_shared_raw_fixed"} <= set(faulty)


def test_report_of_a_library_kernel() -> None:
    result = tilescope("run", "matmul_tiled", "--size", "256x256x256", "--tile", 16)
    assert result.exit_code == 0
    for row in (
        "tiled<16>, MxNxK = 256x256x256, tile 16",
        "grid 16x16, block 16x16: 65,536 threads; 2.00 KiB of shared memory a block",
        "global load               65,536       2,097,152        8.00 MiB",
        "global load              262,144            4.00          100.0%",
        "shared load            1,048,576            1.00               0",
        "FLOPs                 33,554,432  an fma is two",
        "3.88  FLOP per global byte asked for",
        "busiest lines by cost, kernels/library/matmul/tiled.cu",
        "sum += As[y][k] * Bs[k][x];",
        "result: C is within its error bound",
        "hazards: none found (checked: ",
    ):
        assert row in result.stdout
    assert result.stdout.splitlines()[-1] == "verdict: no hazards; right result"
    assert "atomic" not in result.stdout
    assert "local" not in result.stdout


LONGEST = [
    max(names, key=len)
    for _, names in itertools.groupby(sorted(library.names()), lambda name: name.split("_")[0])
]
"""Of each family the longest name: with larger numbers, and beside another."""
FITTING = [
    name
    if name in LONGEST
    else pytest.param(name, marks=pytest.mark.slow)  # much like others of its family
    for name in library.names()
]


@pytest.mark.slow_but("stencil_five_point")
@pytest.mark.parametrize("name", FITTING)
def test_reports_fit_80_columns(name: str) -> None:
    size = [] if name.startswith("faulty") else ["--size", 64 if name in LONGEST else 32]
    extras = [["--by-line"], ["--compare", name]] if name in LONGEST else [["--by-line"]]
    for extra in extras:
        result = tilescope("run", name, *size, *extra)
        assert result.exit_code in (0, 1), result.stderr
        assert [line for line in result.stdout.splitlines() if len(line) > 80] == []
    assert result.stdout.isascii()


def test_comparison() -> None:
    result = tilescope("run", "matmul_naive", "--size", 64, "--compare", "matmul_tiled")
    assert result.exit_code == 0
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["naive", "tiled", "ratio"] in rows
    assert ["global", "load", "accesses", "524,288", "32,768", "16.00x"] in rows
    assert ["shared", "load", "requests", "0", "16,384", "-"] in rows
    assert result.stdout.count("within its error bound") == 2


@pytest.mark.slow
def test_a_compared_kernel_keeps_its_own_tile_where_it_lacks_the_other() -> None:
    result = tilescope(
        "run", "matmul_tiled", "--size", 64, "--tile", 8, "--compare", "matmul_register_tiled"
    )
    assert "tile 8 against MxNxK = 64x64x64, tile 64" in result.stdout


def test_by_line_shows_what_each_line_did() -> None:
    result = tilescope("run", "matmul_transposed", "--size", 64, "--by-line")
    lines = result.stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if "Bs[x][y] = " in line and line.startswith("  "))
    shared = next(line for line in lines[at:] if "shared store" in line)
    assert shared.endswith("32.00 wavefronts each")


def test_what_was_not_checked_is_not_called_clean(scale: Path) -> None:
    result = tilescope("run", scale, "scale<float>", *SCALE_ARGS, "--checks", "none")
    assert "hazards: not checked" in result.stdout
    assert "result: not checked" in result.stdout
    partly = tilescope("run", scale, "scale<float>", *SCALE_ARGS, "--checks", "memory")
    said = " ".join(partly.stdout.split())
    assert "none found (checked: memory; not checked: races, barriers, uninitialised)" in said


def test_the_source_build_says_so() -> None:
    assert (
        "source build" in tilescope("run", "matmul_naive", "--size", 8, "--build", "source").stdout
    )


# -- a user's own kernel ----------------------------------------------------------------


def test_cuda_file_with_negative_numbers(scale: Path) -> None:
    result = tilescope("run", scale, "scale<float>", *SCALE_ARGS)
    assert result.exit_code == 0
    assert "x[i] *= by;" in result.stdout
    assert ["mul", "f32", "50"] in [line.split() for line in result.stdout.splitlines()]


def test_ptx_file(tmp_path: Path) -> None:
    file = tmp_path / "naive.ptx"
    kernel = library.get("matmul_naive").kernel()
    file.write_text(kernel.ptx)
    shape = ("--grid", "2,2", "--block", "8x8")
    arguments = ("f32[16,16]=normal", "f32[16,16]=normal", "f32[16,16]", 16, 16, 16)
    result = tilescope("run", file, kernel.entry, *shape, *arguments)
    assert result.exit_code == 0
    assert ["fma", "f32", "4,096"] in [line.split() for line in result.stdout.splitlines()]
    told = error_of("run", file, "nope", *shape, *arguments)
    assert f"no entry 'nope'; there are: {kernel.entry}" in told


@pytest.mark.slow
def test_the_only_kernel_need_not_be_named_and_headers_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = '#include "m.h"\n__global__ void one(float* x) { x[threadIdx.x] = N + M; }\n'
    Path("one.cu").write_text(source)
    Path("headers").mkdir()
    Path("headers/m.h").write_text("#define M 4\n")
    for command in "run", "sweep":
        flags = ("-D", "N=3", "-I", "headers", "--grid", 1, "--block", 8)
        result = tilescope(command, "one.cu", *flags, "f32[8]")
        assert result.exit_code == 0, result.stderr


def test_a_hazard_is_reported_and_fails_the_run(
    scale: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(scale.parent)
    words = ("run", scale.name, "reach", "--grid", 1, "--block", 32, "f32[32]", 8)
    result = tilescope(*words)
    assert result.exit_code == 1
    assert "error: write out of bounds: x[32]" in result.stdout
    assert "scale.cu:8" in result.stdout
    quiet = tilescope(*words, "--quiet")
    assert quiet.exit_code == 1
    assert quiet.stdout == ""
    assert "error: write out of bounds: x[32]" in quiet.stderr


@pytest.mark.slow
def test_a_wrong_result_fails_the_run() -> None:
    words = ("run", "matmul_missing_first_barrier", "--size", 64, "--schedule", "warps")
    result = tilescope(*words)
    assert result.exit_code == 1
    assert "C is WRONG in 4,096 of 4,096 elements" in result.stdout
    assert "C is WRONG" in tilescope(*words, "-q").stderr


# -- JSON -------------------------------------------------------------------------------


def test_json_is_the_runs_own_layout(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    result = tilescope("run", "matmul_tiled", "--size", 32, "--json", file, "--quiet")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    content = json.loads(file.read_text())
    launch = library.get("matmul_tiled").launch((32, 32, 32))
    run = simulator.launch(
        library.get("matmul_tiled").kernel(), launch.grid, launch.block, launch.args
    )
    for key, value in json.loads(json.dumps(run.to_dict())).items():
        assert key == "seconds" or content[key] == value
    assert content["size"] == [32, 32, 32]
    assert content["tile"] == 16
    assert content["result"]["checked"] is True
    assert content["result"]["outputs"][0]["within"] is True


def test_json_on_stdout_stands_alone() -> None:
    result = tilescope(
        "run", "matmul_naive", "--size", 32, "--compare", "matmul_tiled", "--json", "-"
    )
    content = json.loads(result.stdout)
    assert content["compare"]["name"] == "matmul_tiled"
    assert content["ratios"]["global_load_accesses"] == 16.0
    assert content["ratios"]["shared_load_requests"] == 0.0
    assert content["ratios"]["local_load_requests"] is None


PAIR = """\
__global__ void slow(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x * 8] = 1.0f; }
template <int By> __global__ void fast(float* x, int n) { x[blockIdx.x * 32 + threadIdx.x] = By; }
"""


@pytest.mark.slow_but("fast<1>-said0")
@pytest.mark.parametrize(
    ("other", "said"),
    [
        ("fast<1>", ["slow fast<1>", "global_store_sectors 32 4 8.00x", "grid 1 1",
                     "x: 56 of 256 elements differ, by 1 at most"]),
        ("pair.cu 'fast<1>' --grid 8 --block 32", ["grid 1 8", "x: 224 of 256 elements"]),
        ("twin.cu", ["pair.cu twin.cu", "global_store_sectors 32 32 1.00x",
                     "both leave the same in every array given, bit for bit"]),
        ("twin.cu slow f32[256]=2 32", ["x: 224 of 256 elements differ, by 2 at most"]),
    ],
)  # fmt: skip
def test_compare_own_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str, said: list[str]
) -> None:
    """Beside a file: a kernel of it, or another file with what of the launch is different."""
    monkeypatch.chdir(tmp_path)
    Path("pair.cu").write_text(PAIR)
    Path("twin.cu").write_text(PAIR.splitlines()[0])
    words = ("pair.cu", "slow", "--grid", 1, "--block", 32, "f32[256]", 32, "--compare", other)
    result = tilescope("run", *words)
    assert result.exit_code == 0, result.stderr
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    for words_said in said:
        assert any(words_said.replace("_", " ") in line for line in lines), words_said
    page = tilescope("view", *words, "-o", "page.html")
    assert (page.exit_code, Path("page.html").is_file()) == (0, True)


def test_version_says_what_a_report_of_a_defect_needs() -> None:
    result = tilescope("--version")
    assert result.exit_code == 0
    assert metadata.version("numpy") in result.stdout
    assert re.search(r"fused multiply-add: f32 (in steps|by complex product), f64", result.stdout)


@pytest.mark.parametrize(
    ("words", "found"),
    [("tilescope run matmul_til", "plain,matmul_tiled"), ("tilescope check x", "file,x"),
     ("tilescope run --gpu h2", "plain,h200"),
     ("tilescope predict --gpu a100,h2", "plain,a100,h200"),
     ("tilescope sweep --gpu a100,h2", "plain,a100,h200"),
     ("tilescope sweep matmul_til", "plain,matmul_tiled")],
)  # fmt: skip
def test_a_shell_completes(words: str, found: str) -> None:
    asked = {"_TILESCOPE_COMPLETE": "bash_complete", "COMP_WORDS": words}
    asked["COMP_CWORD"] = str(len(words.split()) - 1)
    done = CliRunner().invoke(main, [], env=asked, prog_name="tilescope")
    assert found in done.stdout.splitlines()


def test_a_run_is_told_where_no_advice_can_be(tmp_path: Path) -> None:
    """The GPU that advice is for need not take what runs here."""
    file = tmp_path / "new.cu"
    guard = "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 1000\n#error too old\n#endif\n"
    file.write_text(guard + "__global__ void k(float* x) { x[threadIdx.x] += 1; }\n")
    words = ("k", "--arch", "compute_100", "--grid", 1, "--block", 7, "f32[7]=ones")
    done = tilescope("run", file, *words, "--json", tmp_path / "out")
    assert done.exit_code == 0
    assert "no advice: " in flat(done)
    assert "too old" in done.stdout
    assert "verdict: no hazards" in done.stdout
    assert json.loads((tmp_path / "out").read_text())["prediction"] is None
