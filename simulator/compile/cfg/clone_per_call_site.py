"""Clone device functions for each call site, where the compiler left calls.

Instructions of an inlined function name their call sites (``.loc ... inlined_at``). The source
build contains calls instead. Each call gets a copy of the function whose instructions name their
call sites in the same way, so that hazards and counters of both builds use the user's own lines.
"""

import dataclasses
from collections.abc import Collection

from kernels.ptx.module import Function, Instruction, Location, Module

from ...isa.decoded import callee

MAX_COPIES = 64
MAX_INSTRUCTIONS = 4_000
"""Of one function's copies, all together; beyond it the calls share one, which knows no caller."""


def clone_per_call_site(
    module: Module, order: list[Function], recursive: Collection[str]
) -> list[Function]:
    """Clone functions for their call sites and complete locations; return all, callees first.

    ``recursive`` functions are not cloned. The module receives the clones.
    """
    callers: dict[str, list[tuple[Function, Instruction]]] = {f.name: [] for f in order}
    result: list[Function] = []
    for function in reversed(order):  # a caller, with all its copies, comes before its callees
        copies = [function]
        sites = callers[function.name]
        places = {_place(call.location) for _, call in sites}
        fits = len(sites) <= MAX_COPIES and len(sites) * len(function.body) <= MAX_INSTRUCTIONS
        own = any(v.space not in ("local", "param") for v in function.variables.values())
        if len(places) > 1 and fits and not own and function.name not in recursive:
            copies += [_copy(function, n) for n in range(2, len(sites) + 1)]
            for copy, (_, call) in zip(copies, sites, strict=True):
                call.targets = (copy.name, *call.targets[1:])
                module.functions[copy.name] = copy
                _locate(copy, call.location)
        elif len(places) == 1:
            _locate(function, sites[0][1].location)
        for copy in copies:
            for ins in copy.body:
                if called := callee(ins):
                    callers[called].append((copy, ins))
        result += copies[::-1]
    return result[::-1]


def _place(location: Location | None) -> object:
    return location and (location.file, location.line, location.inlined_at)


def _copy(function: Function, number: int) -> Function:
    """Copy a function under a name that PTX cannot contain."""
    return dataclasses.replace(
        function,
        copy_of=function.name,
        name=f"{function.name}#{number}",
        registers=dict(function.registers),
        variables={name: dataclasses.replace(v) for name, v in function.variables.items()},
        body=[dataclasses.replace(ins) for ins in function.body],
        labels=dict(function.labels),
    )


def _locate(function: Function, call: Location | None) -> None:
    """Add the call site to each of a function's instructions.

    NVRTC's own device functions, such as ``__shfl_sync``, have no lines and get the call's.
    """
    if call is None or function.located:
        return
    function.located = True
    for ins in function.body:
        ins.location = _called(ins.location, call) if ins.location else call


def _called(location: Location, call: Location) -> Location:
    made = call
    for at in reversed(location.chain):
        made = dataclasses.replace(at, inlined_at=made)
    return made
