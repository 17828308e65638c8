"""``--compare OTHER``: the second launch of a comparison."""

import dataclasses
import shlex
from typing import Any

import click
from click.core import ParameterSource

from kernels import library

from .errors import UserError
from .kernel_names import is_file, names_a_kernel
from .launch_option import with_launch
from .options import result_options
from .request import Request

_FIELDS = {"defines": "options", "includes": "options", "nvrtc": "options"}
"""Options whose place in a request has another name."""


def beside(request: Request, other: str) -> Request:
    """Return the same request for another kernel.

    A library kernel uses its own tile if it does not have this one. For a file, ``other`` is a
    kernel of that file, or a file with its entry and the differing options, as on a command line:
    ``"fast.cu 'tiled<16>' --grid 2,2"``.

    Raises:
        UserError: The two cannot be compared.
    """
    if is_file(request.target):
        return _own(request, other)
    if is_file(other.partition(" ")[0]):
        raise UserError(
            f"{request.target} makes its own arguments, {other} takes those of a command line: "
            "compare a file with a file, or a library kernel with another"
        )
    first, second = library.get(request.target), library.get(other)
    if first.axes != second.axes:
        raise UserError(f"{other} has other sizes than {request.target}: they do not compare")
    tile = request.tile if request.tile in second.tiles else None
    return dataclasses.replace(request, target=other, tile=tile)


@click.command(
    "--compare", context_settings={"ignore_unknown_options": True}, add_help_option=False
)
@result_options
@click.pass_context
def _line(ctx: click.Context, request: Request) -> Request:
    """Return the request of a command line; ``ctx.obj`` receives the explicit options."""
    said = [
        name for name in ctx.params if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    ctx.obj.update({_FIELDS.get(name, name) for name in said})
    return request


def _own(request: Request, other: str) -> Request:
    """Return another kernel of a file, with this one's arguments and shape as defaults."""
    try:
        words = shlex.split(other)
    except ValueError as error:
        raise UserError(f"--compare {other!r}: {error}") from None
    if request.launch:
        request = dataclasses.replace(with_launch(request), launch=0)
    if not words or not is_file(words[0]):
        words.insert(0, request.target)
    said: set[str] = set()
    try:
        made = _line.main(words, prog_name="--compare", standalone_mode=False, obj=said)
    except click.UsageError as error:
        raise UserError(f"--compare {other!r}: {error.format_message().rstrip('.')}") from None
    _, arguments = _split(request)
    entry, own = _split(made)
    changed: dict[str, Any] = {name: getattr(made, name) for name in said - {"target", "words"}}
    changed["words"] = (*entry, *(own or arguments))
    return dataclasses.replace(request, target=made.target, **changed)


def _split(request: Request) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the word that names the entry, if any, and the arguments."""
    named = bool(request.words) and names_a_kernel(request.words[0], request.target)
    return request.words[:named], request.words[named:]
