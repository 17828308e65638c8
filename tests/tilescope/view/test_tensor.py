"""Products by tensor cores, and running values: counted from the trace."""

import numpy as np
import pytest

from tests.tilescope.view.conftest import of_library
from tests.tilescope.view.test_story import blocks, content, teller
from tilescope.view.describe import statement_lines

pytestmark = pytest.mark.slow


def test_products_along_k_and_values_loaded_in_bulk():
    story = of_library("matmul_wgmma", "256")
    found = content(story)
    assert found["depth"] == 16
    parts = blocks(story)
    assert len(parts) == 4
    one = teller(story)
    for _, steps, _, _ in parts:
        counts = np.zeros(steps.lanes.shape[1], int)
        for warp, _ in one._products(steps):
            counts[warp] += 1
        assert counts.tolist() == [256 // 16] * 8 + [0]  # the last warp copies
    reads = sum(int(item.reads.sum()) for item in story.run.trace.maps.values())
    assert sum(beats.loads[-1] for _, _, beats, _ in parts) == reads
    hues = {segment[1] for _, _, beats, _ in parts for segment in beats.segments if segment[0] == 8}
    assert {0, 1} <= hues


def test_a_running_value_is_one_accumulator():
    """Each of a thread's 16 sums has the terms of one element of C."""
    story = of_library("matmul_register_tiled", "32")
    one = teller(story)
    values = {n for n in one.roles.values if n}
    assert [bool(n) for n in one.roles.values] == one.roles.running
    adds = [n for n, item in enumerate(one.every) if item.instruction.opcode == "fma"]
    assert len({one.roles.values[n] for n in adds}) == len(values) > 1


def test_attention_reads_part_of_one_input_and_all_of_others():
    title = "".join(text for text, _ in content(of_library("attention", "48x64"))["title"])
    assert title == (
        "Each of 2 blocks makes up to 32 rows of out from up to 32 rows of Q and all of K and V."
    )


def test_the_assembly_of_a_helper_is_shown_at_its_call(open_page):
    story = of_library("matmul_wgmma", "128")
    shown = open_page(story)
    assert shown.text(".code .now .text").startswith("multiply(c, ")
    assert "64\u00d716 by 16\u00d7128" in shown.text("#say")
    done = int(shown.text(".thread .big"))
    assert 0 < done <= 128
    assert done % 16 == 0
    shown.press("End")
    assert shown.text(".thread .big") == "128"


def test_asm_statements_are_found_by_their_text():
    text = 'int a;\nasm volatile("x; {"\n    "y)" : "=r"(a));\nint asm_count = f(";");\nasm("z");\n'
    assert statement_lines(text) == {2, 3, 5}
