"""Search for fixes: PTX barriers, or edits of the CUDA source."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence

from kernels import Kernel, KernelError
from kernels.compiler.recompile import user_files
from kernels.errors import SimulatorError
from kernels.ptx.module import Function, Instruction, Location

from ..compile.cfg.basic_blocks import reachable
from ..hazards.hazard import Fix, Hazard, Source
from ..hazards.sources import Sources
from ..isa import parse
from ..isa.decoded import roles
from ..run import Run
from .budget import Budget
from .edits.candidates import Proposals
from .edits.ptx_edit import BARRIER, with_barriers
from .edits.statements import Syntax
from .edits.sync_statements import between_blocks, fixable, ptx_remedies
from .progress import ENDED, INTERRUPTED, Watch
from .source_search import SourceSearch
from .verification import Trial

Rerun = Callable[[Kernel], Run]
"""Runs an edited kernel on the same inputs, all checks on."""

_TRIES = 12


def find_fixes(
    kernel: Kernel, run: Run, rerun: Rerun, trials: Sequence[Trial] | None = None,
    races: Rerun | None = None, watch: Watch | None = None,
) -> int:  # fmt: skip
    """Search an edit that removes each race inside blocks; return the number of hazards with a fix.

    CUDA C++ is edited in the source, compiled in both builds, and run; a PTX kernel is edited as
    PTX. Only verified edits are reported. An edit without remaining errors is preferred; otherwise
    this hazard is gone and none is new. If several barriers are needed, a final run with all of
    them determines what remains.

    Args:
        kernel: The kernel.
        run: Its run, whose hazards receive ``fix``.
        rerun: Runs an edited kernel on the same inputs, with all checks.
        trials: Launches that a fix has to pass; default: this launch.
        races: As ``rerun``, without the check of uninitialised memory, whose runs with V bits are
            slow. Most edits fail before that.
        watch: Follows and may stop the search; its results remain.
    """
    watch = watch or Watch()
    if kernel.origin is None:
        unset = any(h.kind == "uninitialised" for h in run.hazards)
        return _find_ptx_fixes(kernel, run, rerun, races if unset else None, watch)
    here = Trial("this launch", run.schedule, lambda edited: (rerun(edited), True))
    given = list(trials or [here])
    return find_source_fixes({run.build: kernel}, run.hazards, rerun, lambda _: given, [run], watch)


def find_source_fixes(
    kernels: Mapping[str, Kernel],
    hazards: Sequence[Hazard],
    rerun: Rerun,
    trials: Callable[[Sequence[Hazard]], Sequence[Trial]],
    runs: Sequence[Run] = (),
    watch: Watch | None = None,
) -> int:
    """Search source edits for the hazards of one launch, in all builds; return the number found.

    Sets ``hazard.fix``.

    Args:
        kernels: The kernel in each build.
        hazards: Hazards of all builds.
        rerun: Runs a kernel on the same inputs.
        trials: Returns the launches that a fix has to pass, those with the hazards first.
        runs: The original launch in each build; the budget is a multiple of their work.
        watch: See ``find_fixes``.
    """
    watch = watch or Watch()
    hazards = [hazard for hazard in hazards if hazard.involved]  # no run shows what others do
    if not any(fixable(hazard) or between_blocks(hazard) for hazard in hazards):
        return 0
    first = next(iter(kernels.values()))
    files = user_files(first)
    budget = Budget(runs, watch.seconds)
    try:
        proposals = Proposals(kernels, Syntax(files))
        if not any(proposals.any(hazard) for hazard in hazards):
            return 0
        others = [other for hazard in hazards for other in hazard.follows]
        for build in {"device", "source"} - set(kernels):
            try:
                kernel = first.rebuild(build)
                others += rerun(kernel).hazards
                kernels = {**kernels, build: kernel}
            except (KernelError, SimulatorError):
                continue  # a build that cannot be had or run proves nothing
        needed = trials([*hazards, *others])
        search = SourceSearch(kernels, files, hazards, needed, budget, others, watch)
    except watch.stops:
        watch.ended = INTERRUPTED
        return 0
    return search.run()


def _find_ptx_fixes(
    kernel: Kernel, run: Run, rerun: Rerun, races: Rerun | None, watch: Watch
) -> int:
    """Search a place in the PTX for each race inside blocks."""
    errors = [h for h in run.hazards if h.severity == "error"]
    racing = [h for h in errors if fixable(h)]
    whole = len(racing) == len(errors)  # no barrier fixes anything but a race in a block
    known = {identity(h) for h in run.hazards}
    budget = Budget([run], watch.seconds)
    try:
        for hazard in racing:
            hazard.fix = _find_barrier(kernel, hazard, known, rerun, whole, races, budget, watch)
            if budget.used_up and hazard.fix is None:
                watch.ended = budget.used_up
                hazard.notes = (*hazard.notes, ENDED[watch.ended])
            whole = whole and hazard.fix is not None and not hazard.fix.errors_left
        _count_left(kernel, racing, rerun)
    except watch.stops:
        watch.ended = INTERRUPTED
    _group(racing)
    return sum(hazard.fix is not None for hazard in racing)


def _count_left(kernel: Kernel, racing: Sequence[Hazard], rerun: Rerun) -> None:
    """Determine what remains with all fixes, if several are needed."""
    fixed = [h for h in racing if h.fix]
    edits = {(h.fix.ptx_lines, h.fix.text) for h in fixed if h.fix}
    if len({h.fix.ptx_lines for h in fixed if h.fix and h.fix.errors_left}) > 1:
        edited = kernel
        for places, text in sorted(edits):
            edited = with_barriers(edited, places, text)
        errors = _errors(rerun(edited))
        for hazard in fixed:
            assert hazard.fix is not None
            if hazard.fix.errors_left:
                hazard.fix = dataclasses.replace(hazard.fix, together=len(errors))


def _group(racing: list[Hazard]) -> None:
    """Number the fixes; one without remaining errors serves every race."""
    whole = next((h.fix for h in racing if h.fix and not h.fix.errors_left), None)
    numbers: dict[tuple[int, ...], int] = {}
    for hazard in racing:
        if fix := whole or hazard.fix:
            group = numbers.setdefault(fix.ptx_lines, len(numbers) + 1)
            hazard.fix = dataclasses.replace(fix, group=group)


def identity(hazard: Hazard) -> object:
    """Return the identity of a finding across runs."""
    return hazard.family, hazard.places


def _errors(run: Run) -> list[Hazard]:
    return [h for h in run.hazards if h.severity == "error"]


def _find_barrier(
    kernel: Kernel, hazard: Hazard, known: set[object], rerun: Rerun, whole: bool,
    races: Rerun | None, budget: Budget, watch: Watch,
) -> Fix | None:  # fmt: skip
    """Return the first place without remaining errors; else one with known errors only.

    If not ``whole``, the latter is returned at once.
    """
    functions = reachable(parse(kernel.ptx), kernel.entry)
    partly: Fix | None = None
    edits = list(_edits(functions, hazard))
    for number, (after, places, text) in enumerate(edits, 1):
        if budget.used_up:
            break
        watch.attempt(number, len(edits), hazard)
        edited = with_barriers(kernel, places, text)
        if races:
            quick = races(edited)
            if any(identity(h) == identity(hazard) for h in quick.hazards):
                budget.pay(quick)
                continue
        result = rerun(edited)
        errors = _errors(result)
        found = {identity(h) for h in result.hazards}
        if identity(hazard) in found or _new_trouble(result, known):
            budget.pay(result)
            continue
        fix = _made(kernel, after, places, text, len(errors))
        if not errors:
            return fix
        partly = partly or fix
        if not whole:
            break
    return partly


def _new_trouble(run: Run, known: set[object]) -> bool:
    """Whether a run has new errors, or a barrier that not all threads reach."""
    return any(
        identity(h) not in known
        for h in run.hazards
        if h.severity == "error" or h.row.check == "barriers"
    )


def _edits(
    functions: list[Function], hazard: Hazard
) -> Iterator[tuple[Instruction, tuple[int, ...], str]]:
    """Yield edits to try: a barrier, or a missing wait for operations in flight."""
    for text in ptx_remedies(hazard.case) or (BARRIER,):
        tried: set[tuple[int, ...]] = set()
        for after, places in _candidates(functions, hazard):
            if places not in tried:
                tried.add(places)
                if len(tried) > _TRIES:
                    break
                yield after, places, text


def _made(
    kernel: Kernel, after: Instruction, places: tuple[int, ...], text: str, errors: int
) -> Fix:
    """Return the fix at some PTX lines, named after the source line that it follows, if any."""
    before = " and ".join(str(place) for place in places)
    source = _source(kernel, after)
    how = f", {source}" if source.line else ""
    return Fix(Source(f"PTX line {before}", 0), places, errors, None, "before", text, how)


def _source(kernel: Kernel, ins: Instruction) -> Source:
    return Sources(kernel.source_text).of(ins)


def _candidates(
    functions: list[Function], hazard: Hazard
) -> Iterator[tuple[Instruction, tuple[int, ...]]]:
    """Yield places for a barrier, likeliest first: (preceding instruction, following PTX lines).

    These are between the end of the earlier access's source line and the next line, before the
    later access's line, and each of these at every copy by unrolling.
    """
    if len(hazard.involved) < 2:
        return
    earlier, later = hazard.involved[0], hazard.involved[1]
    for function in functions:
        body = function.body
        borders = list(_borders(body, function))
        first = next((i for i, ins in enumerate(body) if ins.line == earlier.ptx_line), None)
        second = next((i for i, ins in enumerate(body) if ins.line == later.ptx_line), None)
        if first is None and second is None:
            continue
        near: list[int] = []
        if first is not None:
            near += [b for b in borders if b > first][:2]
        if second is not None:
            near += [b for b in borders if b <= second][-2:][::-1]
            near.append(second)
        if first is not None and first + 1 < len(body):
            near.append(first + 1)
        for place in near:
            yield body[place - 1], (body[place].line,)
        for place in near:
            crossing = (_line(body[place - 1]), _line(body[place]))
            copies = [b for b in borders if (_line(body[b - 1]), _line(body[b])) == crossing]
            if len(copies) > 1:
                yield body[place - 1], tuple(body[b].line for b in copies)
        for place in borders:
            yield body[place - 1], (body[place].line,)


def _line(ins: Instruction) -> tuple[str, int] | None:
    location: Location | None = ins.location
    return (location.file, location.line) if location else None


def _borders(body: list[Instruction], function: Function) -> Iterator[int]:
    """Yield the indices at which a source line or basic block begins."""
    starts = set(function.labels.values())
    for i in range(1, len(body)):
        before = roles(body[i - 1]).flow
        ended = before.jumps or before.leaves
        if not ended and (_line(body[i]) != _line(body[i - 1]) or i in starts):
            yield i
