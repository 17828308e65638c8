"""``tilescope init``: a kernel, its tests and a CI recipe to start from."""

from importlib import resources
from pathlib import Path

import click

from ..cli.errors import UserError

_FILES = {
    "blocksum.cu": "blocksum.cu",
    "test_blocksum.py.txt": "test_blocksum.py",
    "kernels.yml": ".github/workflows/kernels.yml",
}
"""What each file is called where it is written; a test that is here is no test of ours."""
_NEXT = """\
next, in {folder}:
  tilescope check blocksum.cu --grid 8 --block 128 \\
      f32[1000]=normal f32[8] 1000
  pytest                         # needs tilescope's extra test
  tilescope view blocksum.cu --grid 2 --block 128 \\
      f32[200]=normal f32[2] 200 --open
then take the __syncthreads() out of blocksum.cu and do it again"""


def init_command(folder: Path) -> None:
    """Run ``tilescope init``; ``tilescope.usage`` has its options."""
    there = [name for name in _FILES.values() if (folder / name).exists()]
    if there:
        raise UserError(f"{folder / there[0]} is there already; nothing was written")
    for source, name in _FILES.items():
        text = (resources.files("tilescope") / "starter" / source).read_text(encoding="utf-8")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
        click.echo(f"wrote {folder / name}")
    click.echo(_NEXT.format(folder=folder if folder != Path() else "this folder"))
