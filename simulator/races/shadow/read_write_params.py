"""Parameters whose arrays a kernel both reads and writes, so that they may race.

This hint saves a launch its first attempt. The filter finds out only when a written array is read,
possibly at the end of the launch. If the last block reads what the others wrote, the whole launch
would run twice.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from kernels.ptx.module import Function

from ...analysis.taint import call_edges
from ...isa import Flow
from ...isa.decoded import callee, roles
from ...memory.site import Site
from .conflicts import use


def in_place(functions: Mapping[str, Function], accesses: Iterable[Site]) -> list[int]:
    """Return the positions of such parameters; pointers stored in memory are not followed.

    ``functions``: the kernel and its callees, by name. ``accesses``: all of their accesses.
    """
    sites = {id(site.instruction): site for site in accesses if site.space != "param"}
    (entry,) = (function for function in functions.values() if function.is_entry)
    onward: defaultdict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    uses: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for function in functions.values():
        for ins in function.body:
            role, site = roles(ins), sites.get(id(ins))
            if role.row.flow is Flow.CALL:
                for given, into in call_edges(function, functions.get(callee(ins)), ins):
                    onward[given].append(into)
            elif site is not None:
                for name in role.bases:
                    uses[function.name, name].add(use(site))
            elif role.writes:
                written = [(function.name, name) for name in role.writes]
                for name in role.reads:
                    onward[function.name, name] += written
    found = []
    for number, param in enumerate(entry.params):
        if param.type not in ("u64", "b64", "s64") or param.count > 1:
            continue
        todo, visited = [(entry.name, param.name)], set[tuple[str, str]]()
        while todo:
            one = todo.pop()
            if one not in visited:
                visited.add(one)
                todo += onward.get(one, ())
        if len(set[str]().union(*(uses.get(one, ()) for one in visited))) > 1:
            found.append(number)
    return found
