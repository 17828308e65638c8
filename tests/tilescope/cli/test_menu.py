"""The first minute: commands by intent, help on anything, a file alone, colour."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from simulator.native import selection
from tests.support.command_line import error_of, tilescope
from tilescope.cli.main import main
from tilescope.cli.menu.choices import ENGINES
from tilescope.cli.menu.commands import ENTRIES, MENU
from tilescope.text import layout, width
from tilescope.text.colour import painted

KERNEL = """\
__global__ void turn(const float* x, float* out, int n) {
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    out[t] = s[63 - t];
}
template <typename T> __global__ void plane(T* a, int n, bool on) {
    a[(blockIdx.y * 16 + threadIdx.y) * n + blockIdx.x * 16 + threadIdx.x] = on;
}
"""
HOST = """\
int main(int argc, char** argv) {
    float *x, *out;
    cudaMalloc(&x, 64 * sizeof(float));
    cudaMalloc(&out, 64 * sizeof(float));
    turn<<<1, 64>>>(x, out, 64);
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("bare.cu").write_text(KERNEL)
    Path("one.cu").write_text(KERNEL + HOST + "}\n")
    Path("two.cu").write_text(KERNEL + HOST + "    turn<<<1, 32>>>(x, out, 64);\n}\n")
    Path("part.cu").write_text(
        KERNEL + HOST + "    int n = atoi(argv[1]);\n    turn<<<n, 32>>>(x, out, n);\n}\n"
    )
    return tmp_path


def test_each_summary_is_the_first_line_of_its_commands_help() -> None:
    context = click.Context(main)
    for name in ENTRIES.keys() - {"_launch"}:
        command = main.get_command(context, name)
        assert command is not None
        assert command.help is not None
        assert command.help.splitlines()[0] == ENTRIES[name].summary
        assert name in command.name


def test_help_lists_every_command_under_its_title_and_cuts_nothing() -> None:
    shown = tilescope("--help").stdout
    at = [shown.index(f"{title}:") for title in MENU]
    assert at == sorted(at)
    assert "..." not in shown.partition("Look at a kernel:")[2]
    for title, entries in MENU.items():
        section = shown.partition(f"{title}:")[2].partition("\n\n")[0]
        named = [line.split()[0] for line in section.splitlines() if line[2:3].strip()]
        assert named == [entry.name for entry in entries if not entry.hidden]


def test_options_stand_under_titles() -> None:
    shown = tilescope("check", "--help").stdout
    _, _, launched = shown.partition("\nWhat is launched:\n")
    assert "--grid" in launched.partition("\n\n")[0]
    assert "--fix " not in launched.partition("\n\n")[0]


def test_help_imports_no_simulator() -> None:
    """Nor does the help of any command; the simulator takes ten times as long as all of it."""
    every = [["--help"], *([name, "--help"] for name in ENTRIES), ["help", "check"]]
    code = "import sys\nfrom tilescope.cli.main import main\n"
    for words in every:
        code += f"try: main({words})\nexcept SystemExit: pass\nprint({words}, end=' ')\n"
        code += "print(sorted({'simulator', 'tilescope.check', 'device'} & set(sys.modules)))\n"
    code = code.replace("print(['--help'], end=' ')", "print('numpy' in sys.modules, end=' ')")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert "False []" in lines
    for words in every[1:]:
        assert f"{words} []" in lines


def test_engines_are_those_of_the_simulator() -> None:
    assert ENGINES == (selection.AUTO, selection.NUMPY, selection.NATIVE)


def test_help_explains_commands_hazards_and_words(folder: Path) -> None:
    assert tilescope("help").stdout == tilescope("--help").stdout
    assert "--demonstrate" in tilescope("help", "check").stdout
    assert "nothing orders them" in tilescope("help", "raw-race").stdout
    assert "32 banks" in tilescope("help", "bank", "conflicts").stdout
    assert "did you mean sectors" in error_of("help", "sectros")
    assert tilescope("help", "one.cu").stdout == tilescope("one.cu").stdout


def test_explain_says_each_word_of_the_report_once(folder: Path) -> None:
    plain = tilescope("check", "one.cu")
    shown = tilescope("check", "one.cu", "--explain")
    report, _, words = shown.stdout.partition("\nwhat the words mean\n")
    assert report == plain.stdout
    assert shown.exit_code == plain.exit_code == 1
    for word in ("race", "fix", "source build", "schedule"):
        assert words.count(f"\n{word}: ") == 1, word
    assert "sectors: " not in words
    quiet = tilescope("check", "one.cu", "--explain", "--json", "-")
    assert json.loads(quiet.stdout)["errors"] == 1


@pytest.mark.parametrize("command", ["run", "check", "predict", "view -o p.html", "list"])
def test_reports_fit_forty_columns(
    command: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But words that cannot be broken, and command lines that are to be pasted."""
    monkeypatch.setenv("COLUMNS", "40")
    name, *options = command.split()
    lines = tilescope(name, "one.cu", *options).stdout.splitlines()
    assert lines
    wide = [line for line in lines if len(line) > 40 and len(line.split()) > 1]
    assert [line for line in wide if "tilescope run" not in line and "\\" not in line] == []


def test_a_table_of_times_has_one_unit_and_says_the_state_of_the_caches(folder: Path) -> None:
    shown = tilescope("predict", "one.cu").stdout
    assert "times: with warm caches; DRAM read, written, L1, L2: with cold ones" in shown
    assert "us of it launch overhead" in " ".join(shown.split())
    assert "of the warps active; next limiters: " in " ".join(shown.split())
    assert " ms" not in shown
    cold = tilescope("predict", "one.cu", "--caches", "cold").stdout
    assert "times, traffic and rates: with cold caches" in cold
    units = [layout.in_unit(t, layout.time_unit([0.0078, 26.8])) for t in (0.0078, 26.8, 1234, 0)]
    assert units == ["0.00780 ms", "26.8 ms", "1,234 ms", "0 ms"]


def test_a_file_alone_is_described_with_commands_that_run(folder: Path) -> None:
    shown = tilescope("one.cu")
    assert shown.exit_code == 0
    assert "CUDA C++ with 2 kernels, and 1 launch in its host code" in shown.stdout
    assert "turn(const float* x, float* out, int n)" in shown.stdout
    assert "tilescope check one.cu" in shown.stdout
    assert "tilescope exec one.cu" in shown.stdout
    bare = tilescope("bare.cu").stdout
    assert "tilescope check bare.cu turn --grid 1 --block 64" in bare
    assert "exec" not in bare
    ptx = tilescope("ptx", "bare.cu", "turn").stdout
    Path("k.ptx").write_text(ptx)
    assert "PTX with 1 kernel" in tilescope("k.ptx").stdout
    Path("s.py").write_text("from numba import cuda\nimport os\n")
    assert "imports numba.cuda\n" in tilescope("s.py").stdout
    Path("broken.py").write_text("def (")
    assert "no Python" in tilescope("broken.py").stdout
    described = " ".join(tilescope(sys.executable).stdout.split())
    assert "without device code" in described
    Path("text").write_text("text")
    assert "no CUDA C++" in tilescope("text").stdout


def test_check_runs_the_launch_that_the_host_code_says(folder: Path) -> None:
    done = tilescope("check", "one.cu", "--no-fix-search")
    assert done.exit_code == 1
    assert "launch 1, line 14, as the host code says: one.cu turn --grid 1" in done.stderr
    assert "1 error in turn, grid 1, block 64" in done.stdout
    named = tilescope("check", "one.cu", "turn", "--no-fix-search")
    assert named.stdout == done.stdout


def test_check_goes_through_several_launches(folder: Path) -> None:
    done = tilescope("check", "two.cu", "--no-fix-search", "--json", "v.json")
    assert done.exit_code == 1
    assert "== turn, two.cu:14" in done.stdout
    assert "== turn, two.cu:15" in done.stdout
    assert "2 checked" in done.stdout
    assert "--fix is for one launch of two.cu: add --launch N" in error_of(
        "check", "two.cu", "--fix"
    )


def test_what_the_text_does_not_say_is_not_checked_and_not_clean(folder: Path) -> None:
    text = Path("part.cu").read_text().replace("63 - t", "t")
    Path("part.cu").write_text(text)
    done = tilescope("check", "part.cu")
    assert "no hazards in turn" in done.stdout
    assert "launch 2, line 16: turn is not checked" in " ".join(done.stdout.split())
    assert done.exit_code == 2


def test_without_a_launch_one_is_proposed_and_nothing_runs(folder: Path) -> None:
    said = error_of("check", "bare.cu")
    assert "Nothing was run" in " ".join(said.split())
    without_remarks = re.sub(r"    guessed: .*", "", said)
    commands = without_remarks.replace("\\\n", "").split("tilescope check ")[1:]
    assert len(commands) == 2
    for command in commands:
        words = [word.strip("'") for word in command.split()]
        words[1] = command.split("'")[1] if words[1].startswith("plane") else words[1]
        assert tilescope("run", *words, "--checks", "none").exit_code == 0, words
    assert "--grid 4,4 --block 16,16" in commands[1]


@pytest.mark.parametrize(
    ("kernel", "block"),
    [
        ("__global__ void k(float* x) { x[threadIdx.x] = 1; }", "--grid 1 --block 256"),
        ("__global__ void k(float* x) { x[blockIdx.x * 64 + threadIdx.x] = 1; }",
         "--grid 4 --block 64 'f32[256]=normal'\n    guessed: --grid, x; --block from the text"),
        ("__global__ void k(float* x, int rows, int n) { x[blockIdx.x * n + threadIdx.x] = rows; } "
         "int main() {}", "'f32[1024,1024]=normal' 1024 1024"),
        ("__global__ void k(float* x, int n) { x[n] = 1; } int main() {}", "tilescope exec k.cu"),
        ("const int N = 96; __global__ void k(int* x) { __shared__ int s[N]; s[0] = x[0]; }", "96"),
        ("#define N 8\n__global__ void k(int* x) { __shared__ int s[N][N + 1]; "
         "s[threadIdx.y][0] = x[0]; }", "--grid 1 --block 16,8"),
        ("#include <cuda_fp16.h>\n"
         "__global__ void __launch_bounds__(128) k(double2* x, bool b, unsigned n, half h) {}",
         "--block 128 'f64[128,2]=normal' 1 128 1.5"),
        ("template <int N> __global__ void k(char* x) { extern __shared__ int s[]; }",
         "'k<32>' --grid 1 --block 256 --shared 4096 'i8[256]=arange'"),
        ("#define N 5\n__constant__ float w[N], v[2]; __constant__ float c[N - 1];\n"
         "__global__ void k(float2 *x, int2 size, float3 a) { "
         "x[blockIdx.y * 8 + threadIdx.y].x = c[0]; }",
         "'f32[32,16,2]=normal' 'struct(16,32)' 'struct(1.5,1.5,1.5)' --symbol "
         "'c=f32[4]=normal'\n"),
        ("struct S { int* x; }; __global__ void k(S s, int** x) {}", "--block 256 ? ?"),
    ],
)  # fmt: skip
def test_what_a_signature_proposes(kernel: str, block: str, folder: Path) -> None:
    Path("k.cu").write_text(kernel)
    assert block in error_of("check", "k.cu").replace("\\\n    ", "")


def test_list_shows_signatures(folder: Path) -> None:
    shown = tilescope("list", "two.cu").stdout
    assert "  plane<typename T>(T* a, int n, bool on)" in shown
    assert "launches in its host code" in shown
    assert "matmul_tiled MxNxK, tile" in tilescope("list").stdout


class Terminal:
    """A stream on a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("variables", "expected"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_colour_is_for_terminals(
    variables: dict[str, str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert width.has_colour(Terminal()) is expected  # type: ignore[arg-type]
    assert not width.has_colour(io.StringIO())


def test_colour_changes_no_character() -> None:
    report = (
        "2 errors in k, grid 1\n\nerror: a race\n  fix  barrier: verified, 0 left\n        +x\n"
    )
    shown = painted(report)
    assert shown.count("\x1b[") >= 8
    assert click.unstyle(shown) == report
