"""Declarations that PTX allows, and those that it does not."""

from __future__ import annotations

import pytest
from test_refused import LINE, launch

import simulator
from kernels import Kernel, KernelError
from kernels.errors import PtxError


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (".reg .bf16 %b;", "nothing is declared as .bf16: .b16 holds it"),
        (".shared .bf16 s;", "nothing is declared as .bf16"),
        (".reg .v2 .b32 %v;", "vector registers are not executed yet"),
        (".shared .b32 s[0];", "'s' has no extent"),
        (".shared .b32 s[];", "'s' has no extent"),
        (".shared .b32 s = 3;", "'s' is in .shared and cannot have an initial value"),
        (".shared .v4 .b64 s;", "'s' is a vector of more than 16 bytes"),
        (".shared .v3 .b32 s;", "cannot read '.v3' here"),
    ],
)
def test_declarations_inside(code: str, words: str) -> None:
    with pytest.raises(PtxError, match=rf"^PTX line {LINE}: .*{words}"):
        launch(code)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (".global .f32 g = 1;", "the whole number 1 for a .f32"),
        (".global .b32 g; .global .b32 g;", "'g' is declared twice"),
        (".local .b32 g;", "'g' is in .local and stands outside of a function"),
        (".visible .entry e(.param .u64 p, .param .u64 p) { ret; }", "'p' is declared twice"),
    ],
)
def test_declarations_outside(code: str, words: str) -> None:
    text = f".version 9.0\n.target sm_90\n{code}\n.visible .entry k() {{ ret; }}\n"
    with pytest.raises((PtxError, KernelError), match=words):
        simulator.launch(Kernel.from_ptx(text, "k"), 1, 1, [])


def test_declarations_that_are_right() -> None:
    code = ".extern .shared .b8 more[]; .global .f32 g[2] = {1.0, 0f3F800000}; .global .v4 .f32 h;"
    text = f".version 9.0\n.target sm_90\n{code}\n.visible .entry k() {{ ret; }}\n"
    assert simulator.launch(Kernel.from_ptx(text, "k"), 1, 1, []).hazards == []
