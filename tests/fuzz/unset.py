"""Random programs that copy uninitialised memory: is it told exactly where it is used?

The simulator's verdict is held to the interpreter's account
(``tests/oracles/interpreter/definedness.py``): whether there is a hazard at all and, where few
instructions read uninitialised memory, at which of them. Where nothing is used the results are
equal as well.
"""

from typing import Any

import numpy as np

from tests.fuzz import compare, cuda_unset, ptx_unset, ptx_unset_program
from tests.fuzz.compare import SCHEDULES, Launch
from tests.fuzz.cuda import BUILDS
from tests.fuzz.report import Report, seeds
from tests.oracles import interpreter
from tests.oracles.interpreter import Follow

Program = ptx_unset_program.Program | cuda_unset.Program
CUDA = 6
"""Every so many programs one is of CUDA C++: they have to be compiled."""
FEW = 4
"""Reading instructions that the simulator can tell apart in the runs it allows itself."""


def account(launch: Launch, wanted: set[int] | None = None) -> tuple[Follow, list[bytes]]:
    """What the interpreter says of a launch: with undefined bits from some lines alone, or all."""
    missing, members, given = [], [], list[Any]()
    for arg in launch.args:
        if isinstance(arg, np.ndarray):
            bits = getattr(arg, "missing", None)
            missing.append(None if bits is None else np.asarray(bits).tobytes())
            of_bytes = launch.members if arg.dtype == np.uint8 else None
            members.append(fields(arg.dtype) if arg.dtype.fields else of_bytes)
            given.append(bytearray(np.asarray(arg).tobytes()))
        else:
            given.append(arg.tobytes())
    follow = Follow(wanted, missing, members)
    found = interpreter.run(
        launch.ptx, launch.entry, launch.grid, launch.block, given, launch.shared_bytes,
        follow=follow,
    )  # fmt: skip
    return follow, found


def fields(dtype: np.dtype[Any]) -> bytes:
    """The bits of an element that belong to a field."""
    found = bytearray(dtype.itemsize)
    for kind, offset, *_ in (dtype.fields or {}).values():
        found[offset : offset + kind.itemsize] = b"\xff" * kind.itemsize
    return bytes(found)


def seen(raw: bytes, dtype: np.dtype[Any], of_bytes: bytes | None) -> bytes:
    """An array's bytes, with zeros for padding; ``of_bytes``: members where the dtype is bytes."""
    members = fields(dtype) if dtype.fields else of_bytes if dtype == np.uint8 else None
    if members is None:
        return raw
    return bytes(b & members[i % len(members)] for i, b in enumerate(raw))


def judged(launch: Launch, schedule: str | int, report: Report | None = None) -> str | None:
    """What the simulator says otherwise than the interpreter, if anything."""
    follow, wanted = account(launch)
    if report:
        report.reach(
            "verdicts", "used" if follow.used else "copied" if follow.reads else "not read"
        )
        for what in {what for _, what in follow.uses} | ({"result"} if follow.left else set()):
            report.reach("uses", what)
    try:
        found, run = compare.simulated(launch, schedule)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if other := [h for h in run.hazards if h.kind != "uninitialised"]:
        return f"invented hazard: {compare.first_line(other[0])}"
    places = source_lines(launch.ptx)
    told = {places[item.ptx_line] for hazard in run.hazards for item in hazard.involved[:1]}
    reads = {places[line] for line in follow.reads}
    if told and not follow.used:
        return f"invented: lines {sorted(told)} read uninitialised memory, and nothing uses it"
    if not told and like_padding(launch, follow):
        return None if run.padding else "missed: members that count as padding, without a word"
    if follow.used and not told:
        return f"missed: a use of uninitialised memory: {sorted(follow.uses) or 'a result'}"
    if not follow.used:
        arrays = (arg for arg in launch.args if isinstance(arg, np.ndarray))
        for number, (a, b, array) in enumerate(zip(found, wanted, arrays, strict=True)):
            one, two = (seen(raw, array.dtype, launch.members) for raw in (a, b))
            if one != two:
                return compare.place(number, one, two)
        return None
    if not told <= reads:
        return f"lines {sorted(told - reads)} read nothing that is unset"
    if 1 < len(follow.reads) <= FEW:
        # Where a read goes that nothing determines, another undefined value decides.
        anywhere = {line for line, what in follow.uses if what == "address"}
        each = {line: account(launch, {line})[0] for line in follow.reads - anywhere}
        used = {line for line, one in each.items() if one.used}
        padding = {line for line in used if run.padding and like_padding(launch, each[line])}
        alone = {places[line] for line in used}
        if missed := {places[line] for line in used - padding} - told:
            return f"missed: lines {sorted(missed)}, whose reads are used"
        if told - alone and not account(launch, follow.reads - used)[0].used:
            return f"invented: lines {sorted(told - alone)}, whose reads are not used"
    return None


def like_padding(launch: Launch, follow: Follow) -> bool:
    """Whether undefined bits are left in bytes alone, of a type that the simulator cannot know."""
    kinds = {launch.args[n - 1].dtype for n in follow.left_in}
    unknown = launch.members is not None and launch.kernel is None
    return unknown and not follow.uses and kinds == {np.dtype("u1")}


def source_lines(ptx: str) -> dict[int, str]:
    """To each line of PTX the source line it comes from, or itself: hazards are told by those."""
    found, source = {}, ""
    for number, line in enumerate(ptx.splitlines(), 1):
        words = line.split()
        if words[:1] == [".loc"]:
            source = f"{words[1]}:{words[2]}"
        found[number] = source or str(number)
    return found


def draw(seed: int) -> Program:
    """The program of a seed."""
    return (cuda_unset if seed % CUDA == 0 else ptx_unset).draw(seed)


def wrong(program: Program, report: Report | None = None) -> str | None:
    """What is wrong with a program's run, if anything."""
    schedule = SCHEDULES[program.seed // CUDA % len(SCHEDULES)]
    if isinstance(program, ptx_unset_program.Program):
        launches = {"": program.launch()}
    else:
        launches = {f"{build}: ": program.launch(build) for build in BUILDS}
    for build, launch in launches.items():
        if report:
            report.launches += 1
        if said := judged(launch, schedule, report):
            return f"{build}{schedule}: {said}"
    return None


def shrunk(program: Program, what: str) -> str:
    """The smallest program found that still goes wrong in the same way."""
    kind = next((word for word in ("invented", "missed", "Error") if word in what), what[-20:])
    text = compare.shrunk(program, wrong, kind, 200)
    return text + (
        program.ptx() if isinstance(program, ptx_unset_program.Program) else program.source()
    )


def run(seconds: float, seed: int, count: int | None = None) -> Report:
    """Draw programs for some seconds, or ``count`` of them."""
    verdicts = {"used", "copied", "not read"}
    report = Report(known={"verdicts": verdicts, "uses": {"guard", "address", "result"}})
    return compare.drawn(report, seeds(seconds, seed, count), draw, wrong, shrunk)
