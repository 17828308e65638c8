"""A header that is not found, and left out: it is told, though the kernel compiles without."""

import json
from pathlib import Path

import pytest

from kernels import CompileError, Kernel
from tests.support.command_line import flat, tilescope

KERNEL = "#ifndef SCALE\n#define SCALE 1.0f\n#endif\n__global__ void k(float* x) { *x = SCALE; }\n"
SHAPE = ("--grid", 1, "--block", 32, "f32[32]=ones")
LOST = "not found, left out: {}; -I FOLDER says where to look"


@pytest.mark.parametrize("main", ["", "int main() { k<<<1, 1>>>(nullptr); }\n"])
@pytest.mark.parametrize("spelled", ['"of/mine.h"', "<of/mine.h>", "<mine.cuh>"])
def test_a_header_of_the_users_is_told(spelled: str, main: str) -> None:
    source = f"#include <vector>\n#include {spelled}\n{KERNEL}{main}"
    for _ in range(2):  # the second time out of the cache
        assert Kernel.from_cuda(source, "k").notes == (LOST.format(spelled[1:-1]),)


def test_each_is_told() -> None:
    source = f'#include "a.h"\n#include <stdexcept>\n#include "b.h"\n{KERNEL}'
    assert Kernel.from_cuda(source, "k").notes == (LOST.format("a.h, b.h"),)


@pytest.mark.slow_cases("...n#include <cublas_v2.h>")
@pytest.mark.parametrize(
    "lines",
    [
        "#include <vector>\n#include <iostream>\n#include <unistd.h>\n#include <sys/time.h>",
        '#include "cuda_runtime.h"\n#include "helper_cuda.h"\n#include <cublas_v2.h>',
        "#include <thrust/device_vector.h>\n#include <opencv2/opencv.hpp>",
        '#ifdef _WIN32\n#include "for_windows.h"\n#endif\n#include <vector>',
    ],
)
def test_headers_of_the_host_and_those_that_conditions_leave_out_are_not_told(lines: str) -> None:
    assert Kernel.from_cuda(f"{lines}\n{KERNEL}", "k").notes == ()


@pytest.mark.slow
def test_a_folder_that_is_not_there_is_told_and_one_that_is_has_the_header(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # names are short there: no line has to be longer than 80
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "mine.h").write_text("#define SCALE 2.0f\n")
    file, wrong = Path("k.cu"), Path("icn")
    file.write_text(f'#include "mine.h"\n{KERNEL}')
    notes = [f"-I {wrong}: no such folder", LOST.format("mine.h")]
    for command in ("run", "check"):
        result = tilescope(command, file, *SHAPE, "-I", wrong)
        assert result.exit_code == 0
        assert all(f"note: {note}" in flat(result) for note in notes)
        made = json.loads(tilescope(command, file, *SHAPE, "-I", wrong, "--json", "-").stdout)
        assert made["notes"] == notes
        said = flat(tilescope(command, file, *SHAPE, "-I", "inc"))
        assert "note" not in said
    for command in ("ptx", "barriers"):
        said = tilescope(command, file, *(SHAPE if command == "barriers" else ()), "-I", wrong)
        assert said.stderr.splitlines() == [f"warning: {note}" for note in notes]
    predicted = json.loads(tilescope("predict", file, *SHAPE, "-I", wrong, "--json", "-").stdout)
    assert predicted["predictions"][0]["notes"][:2] == notes
    swept = tilescope("sweep", file, *SHAPE, "--seed", "1,2", "-I", wrong)
    assert [flat(swept).count(f"note: {note}") for note in notes] == [1, 1]


def test_an_error_names_what_is_not_there(tmp_path: Path) -> None:
    file = tmp_path / "k.cu"
    file.write_text('#include "mine.cuh"\n__global__ void k(Mine* x) { x->y = 1; }\n')
    said = tilescope("check", file, "--grid", 1, "--block", 1, "f32[1]", "-I", "icn")
    assert said.exit_code == 2
    assert "(not found: mine.cuh; -I FOLDER says where to look)" in said.stderr
    assert "(-I icn: no such folder)" in said.stderr
    assert "not for NVRTC" not in said.stderr


@pytest.mark.parametrize("name", ["stdbool", "stdalign", "iso646"])
@pytest.mark.parametrize("quotes", ["<>", '""'])
def test_names_of_c_that_c_plus_plus_has_as_words(name: str, quotes: str) -> None:
    source = "__global__ void k(bool* x) { alignas(8) bool y = not x[0]; x[0] = y and true; }\n"
    include = f"#include {quotes[0]}{name}.h{quotes[1]}\n"
    assert Kernel.from_cuda(include + source, "k").notes == ()


@pytest.mark.slow_cases("int main...")
@pytest.mark.parametrize("main", ["", "int main() { k<<<1, 1>>>(nullptr); }\n"])
def test_headers_of_branches_that_are_not_compiled_are_not_told(main: str) -> None:
    source = (
        "#if defined(USE_HIP)\n#include <hip/hip_runtime.h>\n#elif defined(USE_MUSA)\n"
        "#include <musa.h>\n#else\n#include <cuda_runtime.h>\n#endif\n#ifdef _WIN32\n"
        '#include <windows.h>\n#endif\n#include <vector>\n#include "mine.h"\n#include "other.h"\n'
        f"__global__ void k(mine_t *a) {{ *a = 1; }}\n{main}"
    )
    with pytest.raises(CompileError) as told:
        Kernel.from_cuda(source, "k")
    assert str(told.value).endswith(
        "\n(left out, not for NVRTC: vector)\n"
        "(not found: mine.h, other.h; -I FOLDER says where to look)"
    )
    with pytest.raises(CompileError, match=r"not found: musa\.h, mine\.h, other\.h;"):
        Kernel.from_cuda(source, "k", options=["-DUSE_MUSA"])


def test_what_is_left_out_of_posix_leaves_its_version() -> None:
    source = "#include <unistd.h>\n#if _POSIX_VERSION < 200112L\n#error old\n#endif\n"
    assert ".entry" in Kernel.from_cuda(source + KERNEL, "k").ptx


def test_a_literal_that_only_nvcc_takes_is_named() -> None:
    struct = "struct P { float a, b; };\n__global__ void k(float* y) { P p = "
    with pytest.raises(CompileError, match=r"taken by nvcc, but not by NVRTC: write P\{...\}"):
        Kernel.from_cuda(struct + "(P){1, 2}; *y = p.a; }", "k")
    with pytest.raises(CompileError, match="expected an expression") as plain:
        Kernel.from_cuda(struct + "; *y = p.a; }", "k")
    assert "nvcc" not in str(plain.value)
