"""Headers that are read once in a process: the PTX is the same; the user's own are read again."""

from pathlib import Path

import pytest

from kernels import nvrtc
from kernels.precompiled import precompiling

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
