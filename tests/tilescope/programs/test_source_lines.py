"""Lines of a process's addresses, as addr2line prints them."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from simulator import Source
from tilescope.programs.source_lines import SourceLines


@pytest.mark.parametrize(
    ("library", "printed", "found"),
    [
        ("/bin/main", "/my code/main.cu:12", ("/my code/main.cu", 12)),
        ("/bin/main", "/my code/main.cu:12 (discriminator 3)", ("/my code/main.cu", 12)),
        ("/bin/main", "/a:b/main.cu:?", ("", 0)),
        ("/bin/main", "??:0", ("", 0)),
        ("/lib/libc.so.6", "/glibc/libc-start.c:58", ("", 0)),
        ("/lib/libcommon.so.6", "/common.cpp:58", ("/common.cpp", 58)),
    ],
)
def test_files_have_spaces_and_libc_is_not_the_users(
    library: str, printed: str, found: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(command: Any, **_: Any) -> Any:
        return subprocess.CompletedProcess(command, 0, printed + "\n", "")

    monkeypatch.setattr("tilescope.programs.source_lines.subprocess.run", run)
    lines = SourceLines(0, [Path("/")])
    lines._tool = "addr2line"
    monkeypatch.setattr(lines, "_mapped", lambda _: (library, 64))
    assert lines.at(64) == Source(*found)
