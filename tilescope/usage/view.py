"""Usage of ``tilescope view``: its options and help."""

from typing import Any

import click

from ..cli.menu.option_groups import GroupedCommand
from ..cli.options import launch_options, result_options


class _Command(GroupedCommand):
    """Command that stores its words in ``ctx.meta``, because the page shows them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta["words"] = tuple(args)
        return super().parse_args(ctx, args)


@click.command(
    "view",
    cls=_Command,
    context_settings={"ignore_unknown_options": True},
)
@result_options
@launch_options
@click.option("--compare", "other", metavar="OTHER", help="What to put beside it, as run has it.")
@click.option(
    "--block-at",
    "places",
    metavar="X[,Y[,Z]]",
    multiple=True,
    help="A block to record step by step, before others; may be given several times.",
)
@click.option(
    "-o", "--output", default="run.html", show_default=True, metavar="FILE", help="The page."
)
@click.option(
    "--tiles",
    metavar="T,T",
    help="Tile sizes of a library kernel to predict, for the table under Speed.",
)
@click.option("--record", "film", metavar="GIF", help="A play of the page as a GIF, too.")
@click.option("--open", "show", is_flag=True, help="Show it in a browser.")
@click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
@click.pass_context
def view_command(*given: Any, **options: Any) -> Any:
    """Run a kernel and draw what happened: one HTML file that opens from disk.

    TARGET, ENTRY and ARGUMENTs are as in tilescope run. The page tells the run from its
    real values: grid, block and thread side by side, played in beats, with the warps'
    timeline, reuse, sectors and banks; a race opens at its moment. Steps are recorded of
    some 60 blocks, fewer where the page would be larger than 2 MB, those of hazards and of
    --block-at first. Unless --schedule says otherwise, one warp runs at a time (all threads
    in lockstep, if there are more than 65,536).
    Of a pipeline's file (.toml) the page shows every launch.

    \b
    Examples:
      tilescope view matmul_tiled --size 64 --open
      tilescope view matmul_naive --size 64 --compare matmul_tiled -o tiling.html
      tilescope view matmul_tiled --size 6 --record tiled.gif
      tilescope view matmul_missing_first_barrier --size 32 --open
      tilescope view my.cu 'tiled<2>' --grid 3,3 --block 2,2 \\
          f32[6,6]=arange f32[6,6]=ones f32[6,6] 6 6 6

    Exit code 0: the page was written; 2: it could not run.
    """  # noqa: D301 - click reads \b
    from ..commands.view import view_command as body

    return body(*given, **options)
