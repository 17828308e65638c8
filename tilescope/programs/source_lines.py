"""The source line of an address in a running program (``addr2line`` of binutils)."""

import linecache
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kernels.compiler.toolkit import is_toolkit
from simulator import Source

_GENERATED = re.compile(r"tmpxft_[\w-]+?-\d+_(.+)\.cudafe1\.(cpp|stub\.c)")
"""nvcc's own files. Lines of templates in the first kind are those of the ``.cu`` file."""

_PLACE = re.compile(r"(.+):(\d+)(?: \(discriminator \d+\))?")
"""A line of addr2line; names of files may have spaces."""
_STARTS_MAIN = re.compile(r"libc(-[\d.]+)?\.so|ld-linux")
"""Libraries that call ``main``: where they have debug lines, those are none of the user's."""


class SourceLines:
    """Lines of one process's code, each looked up once.

    ``folders``: where the user's sources are.
    """

    def __init__(self, pid: int, folders: Sequence[Path] = ()) -> None:
        self._pid, self._folders = pid, folders
        self._found: dict[int, Source] = {}
        self._tool = shutil.which("addr2line")

    def at(self, address: int) -> Source:
        """Return the line that a call returns to; no file if unknown or CUDA's own."""
        if address not in self._found:
            self._found[address] = self._look_up(address)
        return self._found[address]

    def _look_up(self, address: int) -> Source:
        file, offset = self._mapped(address)
        if not file or self._tool is None or _STARTS_MAIN.match(os.path.basename(file)):
            return Source("", 0)
        # -i: what is inlined there, too; one before: the call, not what comes after it.
        command = [self._tool, "-i", "-e", file, hex(offset - 1)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        for line in done.stdout.splitlines():
            place = _PLACE.fullmatch(line)
            if place and place[1] != "??" and not is_toolkit(place[1]):
                name, number = self._user_file(os.path.abspath(place[1])), int(place[2])
                if not name:
                    continue
                return Source(name, number, linecache.getline(name, number).strip())
        return Source("", 0)

    def _user_file(self, name: str) -> str:
        """Return the user's file whose lines a file of nvcc's has; empty if there is none."""
        generated = _GENERATED.fullmatch(os.path.basename(name))
        if generated is None:
            return name
        found = (folder / f"{generated[1]}.cu" for folder in self._folders)
        is_stub = generated[2] != "cpp"
        return next((str(path) for path in found if path.is_file() and not is_stub), "")

    def _mapped(self, address: int) -> tuple[str, int]:
        """Return the file that is mapped there, and the address's place in it."""
        try:
            with open(f"/proc/{self._pid}/maps", encoding="utf-8") as maps:
                for line in maps:
                    bounds, _, offset, _, _, *path = line.split(maxsplit=5)
                    low, high = (int(word, 16) for word in bounds.split("-"))
                    if low <= address < high and path and path[0].startswith("/"):
                        return path[0].strip(), address - low + int(offset, 16)
        except (OSError, ValueError):
            pass
        return "", 0
