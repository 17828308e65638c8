"""PTX texts of several units joined to one."""

import pytest

from kernels import Kernel
from kernels.ptx.link import LinkError, link
from kernels.ptx.parser import parse

HEAD = ".version 8.{}\n.target sm_90\n.address_size 64\n"
ONE = (
    HEAD.format(0)
    + """
.extern .func (.param .b32 r) twice (.param .b32 x);
.extern .global .align 4 .u32 shared_value;
.extern .shared .align 16 .b8 room[];
.global .align 4 .u32 mine = 5;
.visible .entry k(.param .u64 out) { .reg .u32 %a; .loc 1 7 3
 ld.global.u32 %a, [mine]; ld.global.u32 %a, [shared_value]; ret; }
.file 1 "one.cu"
"""
)
TWO = (
    HEAD.format(3)
    + """
.visible .global .align 4 .u32 shared_value = 20;
.extern .shared .align 16 .b8 room[];
.global .align 4 .u32 mine = 7; // not that of the other
.weak .global .align 4 .u32 soft = 1;
.visible .func (.param .b32 r) twice (.param .b32 x) { .reg .u32 %a; .loc 1 3 1
 ld.global.u32 %a, [mine]; st.param.b32 [r], %a; ret; }
.file 1 "two.cu"
"""
)
SPARE = HEAD.format(0) + ".visible .func unused () { ret; }\n"


def test_symbols_meet_and_names_of_a_unit_stay_apart() -> None:
    text = link([ONE, TWO, SPARE])
    module = parse(text)
    values = {name: one.init for name, one in module.variables.items()}
    assert values == {"mine$unit0": (5,), "mine$unit1": (7,), "shared_value": (20,), "soft": (1,),
                      "room": ()}  # fmt: skip
    assert set(module.functions) == {"k", "twice"}
    assert module.version == "8.3"
    lines = {}
    for name, function in module.functions.items():
        function.load()
        lines[name] = {ins.location.file for ins in function.body if ins.location}
    assert lines == {"k": {"one.cu"}, "twice": {"two.cu"}}
    assert Kernel.from_ptx(text, "k").entry == "k"


def test_a_weak_definition_gives_way_and_two_others_are_refused() -> None:
    strong = HEAD.format(0) + ".visible .global .align 4 .u32 soft = 9;\n.entry j() { ret; }\n"
    assert parse(link([ONE, TWO, strong])).variables["soft"].init == (9,)
    assert parse(link([strong, ONE, TWO])).variables["soft"].init == (9,)
    with pytest.raises(LinkError, match="soft"):
        link([strong, strong.replace("j()", "i()")])
