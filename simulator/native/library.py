"""The runtime as machine code, loaded once in a process; functions of accesses when needed."""

from __future__ import annotations

import functools

from . import jit
from .access_names import access_text, callees
from .runtime import (
    function_unit,
    memory_access,
    memory_tables,
    race_filter,
    requests,
    whole_warp,
)
from .runtime.across_lanes import shuffle, vote
from .runtime.atomic_order import step_to
from .runtime.blocks import run_blocks
from .runtime.function_unit import (
    unit_cos,
    unit_ex2,
    unit_lg2,
    unit_rcp,
    unit_rcp64,
    unit_rsqrt,
    unit_sin,
    unit_sqrt,
    unit_tanh,
)
from .runtime.generic import plain_addresses
from .runtime.warps import (
    begin_round,
    forget,
    forget_rounds,
    gate,
    join,
    leave,
    pick,
    put_back,
    renew,
    restore,
    save,
    start_waiting,
)
from .translate import module_text
from .unit_tables import UNIT_TABLES, unit_tables

_UNIT = (
    unit_rcp,
    unit_rcp64,
    unit_rsqrt,
    unit_sqrt,
    unit_lg2,
    unit_ex2,
    unit_sin,
    unit_cos,
    unit_tanh,
)
_CONTROL = (
    *_UNIT, run_blocks, pick, join, leave, forget, begin_round, forget_rounds, renew, save,
    restore, gate, shuffle, vote, step_to, put_back, start_waiting,
)  # fmt: skip
_INLINED = frozenset(
    function.__name__
    for function in (
        memory_access.access, memory_access.look_global, memory_access.look_inside,
        memory_access.move_lane, memory_tables.element, memory_tables.put_element,
        memory_tables.all_defined, memory_tables.define, memory_tables.races,
        memory_tables.any_missing, memory_tables.clear, memory_tables.enters,
        whole_warp.enter_lanes, whole_warp.judge_defined, whole_warp.any_outside,
        whole_warp.look_local_whole,
        whole_warp.look_global_whole, whole_warp.look_shared_whole,
        memory_access.count_request, memory_access.repeats, requests.outside,
        race_filter.may_race_read, race_filter.may_race_write, race_filter.ordered,
        function_unit.quadratic, function_unit.from_fixed, function_unit.unless_positive,
        function_unit.unit_turn, function_unit.tanh_bits,
        race_filter.joined, race_filter.succeeded, race_filter.current,
    )
)  # fmt: skip
_LEVEL = 2
_loaded: dict[str, jit.LoadedObject] = {}


@functools.cache
def entry() -> int:
    """Return the address of ``run_blocks``, after all of the runtime but accesses is loaded."""
    jit.export(UNIT_TABLES, int(unit_tables().ctypes.data))
    made = jit.load(module_text(_CONTROL, _INLINED), _LEVEL)
    _loaded["control"] = made
    for function in _CONTROL:
        jit.export(function.__name__, made.address(function.__name__))
    return made.address("run_blocks")


def load_access(name: str) -> None:
    """Load the function of an access, unless it is."""
    if name in _loaded:
        return
    others = callees(name)
    for other in others:
        load_access(other)
    general = plain_addresses if others else memory_access.access
    text = module_text([general], _INLINED, internal=True) + access_text(name)
    _loaded[name] = made = jit.load(text, _LEVEL)
    jit.export(name, made.address(name))
