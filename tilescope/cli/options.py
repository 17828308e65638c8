"""Options shared by all commands that launch a kernel."""

import difflib
import functools
import re
from collections.abc import Callable
from typing import Any

import click

from . import completion
from .errors import UserError
from .menu.choices import CLOSE, ENGINES, STEP_LIMIT
from .output import EXPLAIN, say
from .request import Request

_TARGET = (
    click.argument("target", shell_complete=completion.targets),
    click.argument("words", nargs=-1, metavar="[ENTRY] [ARGUMENT]..."),
    click.option("--size", metavar="MxNxK", help="Size for a library kernel, as in 70x50x90."),
    click.option("--tile", type=int, help="Tile of a library kernel."),
    click.option(
        "--launch",
        type=click.IntRange(1),
        default=None,
        metavar="N",
        help="The Nth k<<<...>>>(...) in the file's host code.",
    ),
    click.option("--grid", metavar="X[,Y[,Z]]", help="Blocks, for a kernel of your own."),
    click.option("--block", metavar="X[,Y[,Z]]", help="Threads of a block, likewise."),
    click.option(
        "--shared",
        type=click.IntRange(0),
        metavar="BYTES",
        help="Dynamic shared memory.",
    ),
    click.option(
        "--symbol",
        "symbols",
        multiple=True,
        metavar="NAME=ARRAY",
        help="What a __constant__ or __device__ variable holds, as in coeff=f32[4]=ones.",
    ),
    click.option(
        "--cooperative", is_flag=True, help="A cooperative launch: blocks may wait for each other."
    ),
    click.option("--cluster", metavar="X[,Y[,Z]]", help="Blocks of a cluster, likewise."),
    click.option(
        "--stack",
        type=click.IntRange(1),
        metavar="BYTES",
        help="A thread's stack, for functions that call themselves.",
    ),
    click.option(
        "--heap",
        type=click.IntRange(0),
        metavar="BYTES",
        help="What a kernel's malloc has to give.",
    ),
    click.option("--seed", type=int, default=0, show_default=True, help="For random inputs."),
    click.option("--arch", show_default="compute_90", help="Virtual architecture."),
    click.option(
        "--build",
        type=click.Choice(["device", "source"]),
        help="What a GPU would run, or the source unoptimised.",
    ),
    click.option(
        "-D", "defines", multiple=True, metavar="NAME[=VALUE]", help="Define a macro for NVRTC."
    ),
    click.option(
        "-I", "includes", multiple=True, metavar="FOLDER", help="Where to look for headers."
    ),
    click.option(
        "--option", "nvrtc", multiple=True, metavar="OPTION", help="Any other NVRTC option."
    ),
)
_RESULT = (
    click.option(
        "--expect",
        multiple=True,
        metavar="NAME=ARRAY",
        help="What an array should become, as in C=@right.npy or C=ones.",
    ),
    click.option(
        "--reference", metavar="MODULE:FUNCTION", help="What computes that: called with copies."
    ),
    click.option(
        "--close",
        metavar="RTOL,ATOL",
        help=f"How nearly; by default floats by {CLOSE} and rounding errors, whole ones exactly.",
    ),
)
_SCHEDULE = click.option(
    "--schedule",
    default="lockstep",
    show_default=True,
    metavar="NAME",
    help="lockstep, warps, reverse, or a number: a random one.",
)
_STEPS = click.option(
    "--step-limit",
    type=click.IntRange(1),
    default=STEP_LIMIT,
    metavar="N",
    help="Basic blocks until an endless loop is given up.",
)


def _use_engine(context: click.Context, _: click.Parameter, engine: str) -> None:
    from simulator.native.selection import preferred

    from ..text.layout import wrapped

    missed = context.with_resource(preferred(engine))

    def note() -> None:
        if missed.note and not context.params.get("quiet"):
            click.echo(wrapped(f"note: {missed.note}"), err=True)

    context.call_on_close(note)


engine_option = click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default=ENGINES[0],
    show_default=True,
    expose_value=False,
    callback=_use_engine,
    help="What runs the blocks: native code (tilescope[fast]) where it pays, or one of the two.",
)
device_option = click.option(
    "--device", "index", type=click.IntRange(0), default=0, show_default=True, help="Which GPU."
)
jit_option = click.option(
    "--jit-level",
    type=click.IntRange(0, 4),
    help="Optimisation level of the driver's compiler.  [default: the driver's own]",
)
_CHECKS = click.option(
    "--checks",
    default="all",
    show_default=True,
    metavar="NAMES",
    help="all, none, or names with commas between.",
)


def target_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add a target and its options to a command, which receives them as ``request``."""
    return _requested(function, _TARGET)


def result_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add these options and the expected results, for a command that compares them."""
    return _requested(function, (*_TARGET, *_RESULT))


def _requested(function: Callable[..., Any], options: tuple[Any, ...]) -> Callable[..., Any]:
    @functools.wraps(function)
    def command(
        target: str, words: tuple[str, ...], defines: tuple[str, ...],
        includes: tuple[str, ...], nvrtc: tuple[str, ...], size: str | None, tile: int | None,
        grid: str | None, block: str | None, shared: int | None, symbols: tuple[str, ...],
        cooperative: bool, cluster: str | None, stack: int | None, heap: int | None,
        launch: int | None, seed: int, arch: str | None, build: str | None,
        expect: tuple[str, ...] = (), reference: str | None = None, close: str | None = None,
        **rest: Any,
    ) -> Any:  # fmt: skip
        from .references import tolerances

        refuse_options(words)
        tolerances(close or CLOSE)  # a mistake is reported though nothing is compared
        if seed < 0:
            raise UserError(f"--seed must not be negative: {seed}")
        flags = (*(f"-D{define}" for define in defines), *(f"-I{f}" for f in includes), *nvrtc)
        request = Request(
            target, words, size, tile, grid, block, shared or 0, seed, arch, build, flags,
            symbols, cooperative, stack, heap, cluster, expect, reference, close, launch or 0,
            no_shared=shared == 0,
        )  # fmt: skip
        return function(request=request, **rest)

    return _decorated(command, options)


def schedule_options(function: Callable[..., Any], several: bool = False) -> Callable[..., Any]:
    """Add ``schedule`` and ``step_limit``, as ``simulator.launch`` takes them.

    ``several``: whether the command receives a list of schedules, given with commas between.
    """

    @functools.wraps(function)
    def command(schedule: str, **rest: Any) -> Any:
        schedules = [as_schedule(text) for text in schedule.split(",")] if several else []
        return function(schedule=schedules or as_schedule(schedule), **rest)

    return _decorated(command, (_SCHEDULE, _STEPS, engine_option))


def explain_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--explain``: reports of the command then end with what their words mean."""

    def note(context: click.Context, _: click.Parameter, explain: bool) -> None:
        if not explain:
            return
        reports = context.meta[EXPLAIN] = list[str]()

        def last() -> None:
            from ..text.words import explained

            if reports:
                say(f"\n{explained(chr(10).join(reports))}")

        context.call_on_close(last)

    option = click.option(
        "--explain", is_flag=True, expose_value=False, callback=note,
        help="End the report with what its words mean.",
    )  # fmt: skip
    return option(function)


def as_schedule(text: str) -> str | int:
    """Parse a schedule for ``simulator.launch``; raises ``LaunchError`` if it is invalid."""
    from simulator.execute.schedule import make

    order = int(text) if re.fullmatch(r"-?\d+", text) else text
    make(order)
    return order


def launch_options(function: Callable[..., Any], several: bool = False) -> Callable[..., Any]:
    """Add the options of ``simulator.launch``, and ``checks``, as it takes them.

    ``several``: see ``schedule_options``.
    """

    @functools.wraps(function)
    def command(checks: str, **rest: Any) -> Any:
        chosen = checks if checks in ("all", "none") else tuple(checks.split(","))
        return function(checks=chosen, **rest)

    return schedule_options(_decorated(command, (_CHECKS,)), several)


def refuse_options(words: tuple[str, ...]) -> None:
    """Reject mistyped options, which click passes on like negative numbers."""
    from .argument_spec import is_argument

    for word in words:
        if word.startswith("-") and not is_argument(word):
            context = click.get_current_context()
            known = [name for parameter in context.command.params for name in parameter.opts]
            near = difflib.get_close_matches(word.split("=")[0], known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"see {context.command_path} --help"
            raise UserError(f"no such option {word}; {hint}")


def _decorated(command: Callable[..., Any], options: tuple[Any, ...]) -> Callable[..., Any]:
    for option in reversed(options):
        command = option(command)
    return command
