"""What NVRTC reads once, or not at all: the PTX is the same; the user's own are read again."""

import re
from pathlib import Path
from typing import Any

import pytest

from kernels.compiler import nvrtc, precompiled
from kernels.compiler.precompiled import precompiling


@pytest.fixture(autouse=True)
def as_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """``conftest`` keeps headers from the first text on."""
    monkeypatch.setattr(precompiled, "PAYS_FROM", 2)


SOURCE = """#include <cuda_fp16.h>
__global__ void k(__half* x) { x[threadIdx.x] = __hadd(x[0], x[1]); }
"""


@pytest.mark.parametrize("build", ["device", "source"])
def test_the_ptx_is_the_same(build: str, tmp_path: Path) -> None:
    options = ("-arch=compute_90", *nvrtc.BUILD_OPTIONS[build])
    texts = [nvrtc.compile_cuda(SOURCE, "k.cu", "k", options, tmp_path, False) for _ in range(3)]
    assert precompiling(SOURCE, tmp_path, options)
    assert texts[0] == texts[1] == texts[2]


def test_what_the_user_can_change_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "own.h").write_text("const int own = 1;")
    for source in ('#include "own.h"\n' + SOURCE, "#include <missing.h>\n" + SOURCE, "// none"):
        assert [precompiling(source, tmp_path, ()) for _ in range(3)] == [[]] * 3


def test_the_first_text_goes_without(tmp_path: Path) -> None:
    kept = [precompiling(SOURCE, tmp_path, ()) for _ in range(3)]
    assert not kept[0]
    assert kept[1] == kept[2]
    folder = next(Path(word.partition("=")[2]) for word in kept[1] if "=" in word)
    assert folder.stat().st_mode & 0o77 == 0  # no other user's precompiled header is read


@pytest.mark.parametrize("build", ["device", "source"])
@pytest.mark.parametrize(
    ("source", "runs"),
    [
        ("#define TWO 2\n__global__ void k(float* x) { x[threadIdx.x] = sqrtf(TWO); }", [True]),
        (
            "__global__ void k(cudaTextureObject_t t, int* x) { *x = tex1D<int>(t, 0); }",
            [False],
        ),
        ("#ifdef __CUDACC_RTC_MINIMAL__\nminimal\n#endif\n__global__ void k() {}", [False]),
        ("__global__ void k(cu\\\ndaError_t* x) { *x = {}; }", [True, False]),
    ],
)
def test_what_a_text_does_not_name_is_not_declared_for_it(
    source: str, runs: list[bool], build: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    run = nvrtc._run

    def seen(*args: Any) -> Any:
        asked.append("--minimal" in args[4])
        return run(*args)

    def made() -> Any:
        options = ("-arch=compute_90", *nvrtc.BUILD_OPTIONS[build])
        return nvrtc.compile_cuda(source, "k.cu", "k", options, tmp_path, False)

    monkeypatch.setattr(nvrtc, "_run", seen)
    found = made()
    assert asked == runs
    monkeypatch.setattr(nvrtc, "_ASKS_FOR_MORE", re.compile(""))
    assert made() == found
