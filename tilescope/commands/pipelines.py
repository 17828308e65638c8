"""``run`` and ``check`` of a pipeline file: several launches on the same arrays."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

import simulator
from kernels import Kernel
from kernels.source_access import plain_name
from simulator import Source
from simulator.host_order import Stream, untimely
from simulator.launch import listen
from simulator.memory.storage.module_state import ModuleMemory, as_of, keep
from simulator.observe.checks.array_footprint import ArrayFootprint
from simulator.observe.observers import chosen

from ..check.checker import Checker, Verdict
from ..check.fix_search import search
from ..check.launcher import Launcher
from ..check.policy import Policy, judge
from ..cli.errors import CANNOT_RUN, INTERRUPTED, UserError
from ..cli.host_program import is_cuda, launches_of
from ..cli.output import reader_gone, say, say_report, write_json
from ..cli.progress import ProgressBar
from ..cli.project import changed_since, is_project, read_project, touches
from ..cli.request import Request
from ..cli.target import Target
from ..formats.report_files import Files
from ..sessions.pipeline import DEFAULT_STREAM, Pipeline, read
from ..sessions.recorded_launch import RecordedLaunch
from ..sessions.recording import Session
from ..text.findings import count, findings
from ..text.fixes import fixes_text
from ..text.launches import place
from ..text.layout import fitted, hazard_text
from ..text.report import result
from ..text.script import hazards, summary

HOW = ("build", "schedule", "step_limit", "checks")
"""Options that hold for every launch of a pipeline."""


def is_pipeline(target: str) -> bool:
    """Whether a target is a pipeline file."""
    return target.endswith(".toml")


def refuse_others(ctx: click.Context, request: Request, used: Collection[str]) -> None:
    """Reject options that a pipeline file does not support.

    Raises:
        UserError: There is such an option; the file specifies launches and their options.
    """
    if request.words:
        raise UserError(f"{request.words[0]!r}: {request.target} has its launches' own arguments")
    given = [
        parameter.opts[-1] for parameter in ctx.command.params
        if parameter.name not in ("target", "words", "quiet", *used) and parameter.name is not None
        and ctx.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    ]  # fmt: skip
    if given:
        listed = f"{', '.join(given)} {'is' if len(given) == 1 else 'are'}"
        if is_cuda(request.target):
            raise UserError(f"{listed} for one launch of {request.target}: add --launch N")
        raise UserError(f"{listed} not for a .toml file, which says what it launches, and how")


def host_pipeline(request: Request) -> tuple[Pipeline, list[str]] | None:
    """Return the launches in a file's host code, if there are several and none is chosen.

    The second part has a line for each launch that the text does not say wholly.
    """
    file, options = request.target, request.options
    chosen = request.words or request.launch or request.grid or request.block
    if chosen or not is_cuda(file) or not Path(file).is_file():
        return None
    launches, others = launches_of(file, options)
    if len(launches) + len(others) < 2 or not any(one.known for one in launches):
        return None
    tables = [
        {
            "file": Path(file).name, "kernel": one.kernel, "grid": [*(one.grid or ())],
            "block": [*(one.block or ())], "shared": one.shared_bytes, "args": [*one.args],
            "cooperative": one.cooperative, "options": [*options],
        }
        for one in launches if one.known
    ]  # fmt: skip
    lines = [one.line for one in launches if one.known]
    unknown = [
        f"launch {number}, {place(one.file, one.line)}: {one.kernel} is not checked, as the text "
        f"does not say all of it; tilescope check {plain_name(file)} --launch {number} asks for it"
        for number, one in enumerate(launches, 1) if not one.known
    ]  # fmt: skip
    unknown += [f"{place(at, line)}: {called} is not read, and not checked"
                for at, line, called in others]  # fmt: skip
    return Pipeline(Path(file), {}, tables, {}, lines), unknown


def run_pipeline(
    file: str, build: str | None, how: dict[str, Any], json_file: str | None, quiet: bool
) -> int:
    """Run every launch and print its results; return the exit code.

    ``how``: schedule, checks and step limit as for ``simulator.launch``.
    """
    pipeline = read(Path(file))
    session = _made(pipeline, file, build, how, quiet)
    wrong = [agreement for agreement in pipeline.results() if not agreement.within]
    session.judge(Policy())
    if json_file is not None:
        results = {"results": [agreement.to_dict() for agreement in pipeline.results()]}
        write_json(json_file, session.to_dict() | results)
    if not quiet and json_file != "-":
        say_report(summary(session, {}))
        _results(pipeline)
    return int(bool(wrong) or any(h.severity == "error" for h in hazards(session)))


def draw_pipeline(
    file: str, build: str | None, how: dict[str, Any], quiet: bool, output: Path
) -> list[simulator.Run]:  # fmt: skip
    """Run every launch, write one page, and return the runs."""
    session = _made(read(Path(file)), file, build, how | {"trace": True}, quiet)
    session.show().save(output)
    return [launch.run for launch in session.launches]


def _made(
    pipeline: Pipeline, file: str, build: str | None, how: dict[str, Any], quiet: bool
) -> Session:
    made = _Ordered(pipeline)
    tables = zip(pipeline.lines(), pipeline.launches, pipeline.targets(build), strict=True)
    for line, table, target in tables:
        made.launch(line, table, target, how, quiet)
    return made.session


def check_pipeline(
    file: str, builds: Collection[str], how: dict[str, Any], policy: Policy, fail_on: str,
    fixes: bool, max_hazards: int, files: Files, quiet: bool, since: str | None = None,
    seconds: float | None = None, host: tuple[Pipeline, list[str]] | None = None,
) -> int:  # fmt: skip
    """Check every launch on the arrays as its predecessors left them; return the exit code.

    ``fail_on``: empty for a project's own setting. ``since``: a commit; unchanged kernels are
    skipped and counted. ``seconds``: time limit of each search for fixes. ``host``: independent
    launches instead of the file's, and remarks on those that are not checked. Ctrl-C ends the
    search; findings so far are printed and written.
    """
    path, listed, code = Path(file), list[dict[str, Any]](), 0
    verdicts = list[Verdict]()
    is_independent = host is not None or is_project(file)
    if (files.sarif or files.junit or files.baseline) and not is_independent:
        raise UserError(
            "--sarif, --junit and --write-baseline are for one kernel, or for pyproject.toml"
        )
    if files.baseline and since is not None:
        raise UserError("--write-baseline is of all kernels; --since leaves some out")
    pipeline, own = (
        (host[0], "error") if host
        else read_project(path) if is_project(file) else (read(path), "error")
    )  # fmt: skip
    fail_on = fail_on or own
    every = list(zip(pipeline.lines(), pipeline.launches, strict=True))
    if since is not None:
        changed = changed_since(since, path.resolve().parent)
        every = [one for one in every if _touched(path.parent, one[1], changed)]
    unchanged = len(pipeline.launches) - len(every)
    pipeline.launches = [table for _, table in every]
    ordered = _Ordered(pipeline)
    kind = "uninitialised"
    followed = (kind,) if kind in chosen(how["checks"]) else "none"  # for later launches
    interrupted = False
    needed = bool(quiet or files.any)
    targets = pipeline.targets(warns=quiet or files.quiet)  # reports have the warnings
    for (line, table), target in zip(every, targets, strict=True):
        checker = Checker(
            Launcher(target, how["schedule"], how["checks"], policy, quiet, how["step_limit"])
        )
        place = f"{target.name}, {file}:{line}"
        try:
            with keep(ordered.memory), as_of(target.kernel):
                verdict = checker.find(builds)
                _tell(verdict, place, max_hazards, quiet, files.quiet)
                if fixes:
                    search(checker, verdict, seconds, lambda: not needed and reader_gone())
        except KeyboardInterrupt:
            interrupted = True
            break
        if fixes and (text := fixes_text(verdict)) and (quiet or not files.quiet):
            say_report(text if quiet else f"{text}\n", err=quiet)
        code |= int(verdict.fails(fail_on))
        verdicts.append(verdict)
        listed.append({"file": file, "line": line} | verdict.to_dict())
        interrupted = verdict.interrupted or verdict.stopped
        if interrupted:
            break
        if not is_independent:
            run = ordered.launch(line, table, target, how | {"checks": followed}, quiet)
            late = judge(policy, untimely(run.hazards), target.kernel.name)
            code |= int(any(h.severity == "error" for h in late))
            listed[-1]["order"] = [hazard.to_dict() for hazard in late]
            for hazard in late if files.json != "-" else ():
                say_report(hazard_text(hazard), err=quiet)
    if files.json is not None:
        write_json(files.json, {"schema": 1, "launches": listed, "unchanged": unchanged})
    files.write(verdicts, fail_on, file)
    if interrupted:
        omitted = len(every) - len(verdicts)
        say(f"interrupted: {count(omitted, 'launch', 'launches')} not checked", err=True)
        return code or INTERRUPTED
    if not quiet and not files.quiet:
        _results(pipeline)
        omitted = sum(one["left_out"] + one["set_aside"] for one in listed)
        said = [f"{len(listed)} checked", f"{count(omitted, 'hazard')} ignored" if omitted else ""]
        said.append(f"{unchanged} unchanged since {since}, not checked" if since else "")
        say("; ".join(filter(None, said)))
    for text in host[1] if host else ():
        say_report(fitted(text), err=quiet or files.quiet)
    code |= int(any(not agreement.within for agreement in pipeline.results()))
    return code or (CANNOT_RUN if host and host[1] else 0)


def _tell(verdict: Verdict, place: str, max_hazards: int, quiet: bool, nothing: bool) -> None:
    """Print the findings of one launch."""
    if quiet:
        for hazard in verdict.hazards:
            say_report(hazard_text(hazard), err=True)
    elif not nothing:
        say_report(f"== {place}\n{findings(verdict, max_hazards)}\n")


def _touched(folder: Path, table: dict[str, Any], changed: set[Path]) -> bool:
    options = [str(option) for option in table.get("options", ())]
    return touches(folder / str(table.get("file")), changed, options)


class _Ordered:
    """Launches on shared arrays, each in its stream; device variables persist.

    Streams are those of ``cudaStreamCreate``, which synchronise with the default stream.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        pipeline.check_streams()
        self.session, self._file = Session(), str(pipeline.path)
        self.memory = ModuleMemory()
        self._streams = {DEFAULT_STREAM: self.session.order.legacy}

    def _stream(self, table: dict[str, Any]) -> Stream:
        """Return the launch's, which waits for others where it says so."""
        names = [table.get("stream", DEFAULT_STREAM), *table.get("wait", ())]
        for name in names:
            if name not in self._streams:
                self._streams[name] = self.session.stream()
        stream, *others = (self._streams[name] for name in names)
        for other in others:
            stream.wait(other)
        return stream

    def launch(
        self, line: int, table: dict[str, Any], target: Target, how: dict[str, Any], quiet: bool
    ) -> simulator.Run:  # fmt: skip
        """Make a launch, which the session takes in."""
        session, source = self.session, Source(self._file, line, f"launch of {target.kernel.name}")

        def tell(kernel: Kernel, run: simulator.Run, touched: Sequence[ArrayFootprint]) -> None:
            session.launches.append(RecordedLaunch(kernel, self._file, line, run))
            session.order.work(f"the launch of {kernel.name}", source, touched, run.hazards)

        with session.order.on(self._stream(table)), listen(tell), keep(self.memory):
            return _launch(target, how, quiet)


def _launch(target: Target, how: dict[str, Any], quiet: bool) -> simulator.Run:
    with ProgressBar(target.name, quiet) as progress:
        return simulator.launch(
            target.kernel, target.grid, target.block, target.args, target.shared_bytes,
            progress=progress, symbols=target.symbols, workers="all", **target.how, **how,
        )  # fmt: skip


def _results(pipeline: Pipeline) -> None:
    for agreement in pipeline.results():
        say_report(result(agreement))
