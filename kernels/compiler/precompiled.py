"""Headers that NVRTC reads once in a process, however many texts include them.

``<cooperative_groups.h>`` takes 0.7 s to read and 0.15 s once it is precompiled, and a search for
fixes compiles a file dozens of times. (NVRTC user guide, "Precompiled Headers".)
"""

import atexit
import functools
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from .headers import follow

PAYS_FROM = 2
"""The text with the same headers that reads and keeps them; to keep them takes a seventh more."""

_compiled: Counter[tuple[str, ...]] = Counter()


def precompiling(source: str, directory: Path, options: Sequence[str]) -> list[str]:
    """Return the options by which NVRTC reads the source's headers from what it kept of them.

    The first text with these headers goes without: what is kept pays from the third one on. Only
    headers of the toolkit are kept, which stay what they are while the process runs.
    """
    included = follow(source, directory, options)
    if not included.toolkit or included.texts or included.missing:
        return []
    key = (*options, str(directory), *included.toolkit)
    _compiled[key] += 1
    return ["--pch", f"--pch-dir={_folder()}"] if _compiled[key] >= PAYS_FROM else []


@functools.cache
def _folder() -> str:
    """Return a folder that only this user can write to; it goes when the process ends."""
    folder = tempfile.mkdtemp(prefix="tilescope-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
