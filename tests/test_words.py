"""Words of a command line that become arguments of a kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilescope.failure import UserError
from tilescope.words import parse_arguments


def parse(*words: str) -> list[Any]:
    return parse_arguments(words, np.random.default_rng(0))


def test_array_words(tmp_path: Path) -> None:
    zeros, ones, ramp, sevens = parse("f32[2,3]", "u8[4]=ones", "i16[2,2]=arange", "f16[2]=-7.5")
    assert zeros.dtype == np.float32
    assert zeros.shape == (2, 3)
    assert not zeros.any()
    assert ones.dtype == np.uint8
    assert ones.tolist() == [1, 1, 1, 1]
    assert ramp.tolist() == [[0, 1], [2, 3]]
    assert ramp.dtype == np.int16
    assert sevens.tolist() == [-7.5, -7.5]
    assert sevens.dtype == np.float16
    normal, uniform, whole = parse("f64[1000]=normal", "f32[1000]=uniform", "u8[1000]=uniform")
    assert abs(normal.mean()) < 0.2
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert whole.max() == 255
    assert whole.min() == 0
    file = tmp_path / "a.npy"
    np.save(file, np.arange(6, dtype=np.int32).reshape(2, 3))
    (loaded,) = parse(f"i32[2,3]=@{file}")
    assert loaded.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert loaded.flags.writeable
    with pytest.raises(UserError, match=r"holds int32 \[2, 3\]"):
        parse(f"i32[6]=@{file}")


def test_scalar_words() -> None:
    values = parse("64", "-3", "0x10", "1.5", "-1e-3", "u8:3", "f32:2", "f16:-inf")
    assert values == [64, -3, 16, 1.5, -1e-3, 3, 2.0, -np.inf]
    assert [type(v) for v in values[:5]] == [int, int, int, float, float]
    assert [v.dtype.name for v in values[5:]] == ["uint8", "float32", "float16"]


@pytest.mark.parametrize(
    "word",
    [
        "word", "f33[4]", "f33:4", "f32[]", "f32[4", "f32[-4]", "f32[4]=oops", "u8[4]=300",
        "u8:-1", "i32:1.5", "i32[4]=normal", "f32[4]=@nowhere.npy", "f32[99999999,99999999,9]",
        "f32[4]=@" + __file__,
    ],
)  # fmt: skip
def test_bad_words(word: str) -> None:
    with pytest.raises(UserError, match="argument") as caught:
        parse(word)
    assert word in str(caught.value)
