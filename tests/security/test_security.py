"""Each sentence of ``docs/security.md``, tried."""

import builtins
import os
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import simulator
from kernels import Kernel, KernelError, library, source_access
from simulator import SimulatorError
from simulator.compile.program import Program
from simulator.isa import TABLE
from tests.support.paths import DEFECTS
from tilescope.cli.main import main
from tilescope.view import show
from tilescope.view.describe import shown_path

PROGRAMS = DEFECTS / "random"
HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"
EVIL = '"f\n    import sys; sys.exit(99)\n    #"'
"""A quoted name that ends a comment, or a statement, and goes on as Python."""


def ptx(body: str, before: str = "", params: str = ".param .u64 p", after: str = "") -> str:
    return f"{HEADER}{before}\n.visible .entry k({params})\n{{\n{body}\nret;\n}}\n{after}\n"


STORE = """\
.reg .b32 %r<3>; .reg .b64 %rd<5>; ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x;
.loc 1 1 0
st.global.u32 [%rd1+4096], %r1;
"""
"""Writes outside its array at line 1 of file 1, which a report then shows."""


def run(text: str | Path, **options: Any) -> simulator.Run:
    return simulator.launch(Kernel.from_ptx(text), 1, 32, [np.zeros(32, np.int32)], **options)


def command(*words: str) -> Result:
    return CliRunner().invoke(main, words)


def check_file(path: Path, entry: str = "k") -> Result:
    return command("check", str(path), entry, "--grid", "1", "--block", "32", "i32[32]")


# -- code -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        (PROGRAMS / "rce.ptx").read_text(),
        ptx(f"call {EVIL}, ();", f".func {EVIL} ()\n{{ ret; }}"),
        ptx("", f".global .b32 {EVIL};"),
        ptx(f".reg .b32 {EVIL};"),
        ptx(f".shared .b32 {EVIL};"),
        ptx(f"mov.u32 %r1, {EVIL};"),
        ptx(f".reg .pred %p; @{EVIL} ret;"),
        ptx(f"bra {EVIL};"),
        ptx(f"{EVIL}: ret;"),
        ptx(f"ld.param.u64 %rd1, [{EVIL}];"),
        ptx(f".func {EVIL} ()", params=f".param .u64 {EVIL}"),
        ptx(f".reg .b32 %r1; mov.u32 %r1, %pm0{EVIL};"),
    ],
)
def test_quoted_names_are_no_names(text: str) -> None:
    with pytest.raises((SimulatorError, KernelError)) as caught:
        run(text)
    assert "\n" not in str(caught.value)


def test_code_by_inline_assembly() -> None:
    found = check_file(PROGRAMS / "rce.cu")
    assert found.exit_code == 2
    assert found.output.count("\n") == 1


NAMED = ptx(
    """\
.reg .b32 %secret, %r<3>; .reg .pred %hidden; .reg .b64 %address; .shared .b32 private;
ld.param.u64 %address, [p]; mov.u32 %secret, %tid.x; st.shared.u32 [private], %secret;
setp.lt.u32 %hidden, %secret, 5; @%hidden bra over; call inner, (); over:
ld.global.u32 %r1, [%address]; mov.u32 %r2, %laneid; st.global.u32 [%address], %r2;""",
    ".func inner () { .reg .b32 %own; mov.u32 %own, %ctaid.x; ret; }\n.global .b32 everywhere;",
).replace("entry k(", "entry confidential(")


def test_generated_code_has_no_name_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words of the generated code, its file names and what it refers to."""
    monkeypatch.setenv("TILESCOPE_DUMP", str(tmp_path))
    codes: list[Any] = []
    spaces: list[dict[str, Any]] = []
    made = Program.function

    def function(self: Program, number: int, merge: bool, names: dict[str, Any]) -> Any:
        found = made(self, number, merge, names)
        codes.append(found.__code__)
        spaces.append(names)
        return found

    monkeypatch.setattr(Program, "function", function)
    run(NAMED, checks="none")
    written = sorted(tmp_path.iterdir())
    assert len(written) == len(codes) >= 4
    own = {"secret", "hidden", "address", "private", "over", "inner", "own", "everywhere",
           "confidential", "laneid", "tid"}  # fmt: skip
    for file in written:
        assert re.fullmatch(r"[0-9a-f]{16}\.\d+\.\d+d?\.py", file.name)
        assert not own & set(re.findall(r"[A-Za-z]+", file.read_text()))
        assert re.fullmatch(r"[\w\s(),.:=\[\]#~>+-]*", file.read_text(), re.A)
        assert set(re.findall(r"\bf\d+_\d+_(\w+)", file.read_text())) <= set(TABLE)
    for code in codes:
        assert Path(code.co_filename) in written
        assert all(re.fullmatch(r"[A-Za-z]+\d*(_\w+)?", name) for name in code.co_names)
    for names in spaces:
        assert all(re.fullmatch(r"[A-Za-z]+\d*(_\w+)?|__builtins__", name) for name in names)


def test_file_names_of_generated_code_without_a_dump(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILESCOPE_DUMP", raising=False)
    names: list[str] = []
    original = builtins.compile

    def compile_(source: Any, filename: Any, *rest: Any, **more: Any) -> Any:
        names.append(str(filename))
        return original(source, filename, *rest, **more)

    monkeypatch.setattr(builtins, "compile", compile_)
    run(NAMED + "// of its own", checks="none")
    blocks = [name for name in names if "block" in name]
    assert blocks
    assert all(re.fullmatch(r"<block [0-9a-f]{16}\.\d+\.\d+d?>", name) for name in blocks)


# -- files that are read ----------------------------------------------------------------------


def shown(path: Path) -> str:
    """Everything that tilescope says of a PTX file: report, JSON, SARIF and page."""
    json_file, sarif_file = path.with_suffix(".json"), path.with_suffix(".sarif")
    words = ("check", str(path), "k", "--grid", "1", "--block", "32", "i32[32]")
    told = command(*words, "--json", str(json_file), "--sarif", str(sarif_file))
    assert told.exit_code == 1
    kernel = Kernel.from_ptx(path)
    run = simulator.launch(kernel, 1, 32, [np.zeros(32, np.int32)], trace=True)
    return "".join([told.output, json_file.read_text(), sarif_file.read_text(), show(run).content])


def naming(folder: Path, file: str | Path) -> Path:
    """A PTX file whose report would show line 1 of another file."""
    path = folder / "k.ptx"
    path.write_text(ptx(STORE, after=f'.file 1 "{file}"'))
    return path


def test_files_below_the_folder_are_shown(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for place in ("mine.cu", "deep/mine.cu", str(tmp_path / "mine.cu")):
        (tmp_path / place).write_text("out[i] = sesame;\n")
        assert "sesame" in shown(naming(tmp_path, place))


def test_other_files_are_not_shown(tmp_path: Path) -> None:
    outside = tmp_path / "secret.cu"
    outside.write_text("sesame\n")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link.cu").symlink_to(outside)
    (inside / "folder").symlink_to(tmp_path)
    (inside / "circle").symlink_to(inside / "circle")
    for place in (
        outside, "../secret.cu", "link.cu", inside / "link.cu", "folder/secret.cu",
        f"{inside}/../secret.cu", "circle", "", ".", "no\\0thing", "x" * 5000,
    ):  # fmt: skip
        assert "sesame" not in shown(naming(inside, place))
    text = naming(inside, outside).read_text()
    assert "sesame" not in "".join(map(str, run(text).hazards))


@pytest.mark.parametrize("program", ["leak.ptx", "devzero.ptx"])
def test_programs_that_name_system_files(program: str) -> None:
    hazards = run(PROGRAMS / program).hazards
    assert hazards
    assert not any(source.code for hazard in hazards for source in hazard.sources)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_pipes_devices_and_long_files_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "long").write_bytes(b"x" * (source_access.LIMIT + 1))
    (tmp_path / "whole").write_bytes(b"x" * source_access.LIMIT)
    texts: list[str | None] = []

    def read() -> None:
        for name in ("pipe", "zero", "long", "whole"):
            texts.append(source_access.read_below(name, [tmp_path]))

    reader = threading.Thread(target=read, daemon=True)  # a pipe without a writer holds a reader
    reader.start()
    reader.join(30)
    assert [len(text or "") for text in texts] == [0, 0, 0, source_access.LIMIT]


def test_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(ptx(STORE, f'.global .b32 x;\n.file 1 "{tmp_path / "new"}"'))
    assert list(tmp_path.iterdir()) == []


# -- memory, time, errors -----------------------------------------------------------------------


def test_addresses_reach_no_memory_of_the_host() -> None:
    for address in (0, 1 << 40, (1 << 63) + 8, id(STORE)):
        text = ptx(f".reg .b64 %a; mov.u64 %a, {address}; st.global.u8 [%a+{1 << 50}], 1;")
        (hazard,) = run(text).hazards
        assert hazard.kind in ("out-of-bounds", "read-only")


def test_step_limit_ends_what_has_no_end() -> None:
    loop = ".reg .b32 %r; mov.u32 %r, 0; L: add.u32 %r, %r, 1; bra L;"
    (hazard,) = run(ptx(loop), step_limit=1000).hazards
    assert hazard.kind == "deadlock"


# -- the terminal -------------------------------------------------------------------------------


def test_control_characters_are_not_printed(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text(
        "__global__ void k(int* a) { a[5000] = 1; /* \x1b]0;title\x07 \u202e */ }\n"
        "__global__ void wrong(int* a) { a = \x1b[31m nothing; }\n#ifdef NEVER\n#endif\n"
    )
    told = check_file(source).output + check_file(source, "wrong").output
    path = tmp_path / "k.ptx"
    path.write_text(ptx(STORE, after='.file 1 "\x1b[2J\rname\nfalse line"'))
    told += check_file(path).output
    assert "nothing" in told
    assert "name" in told
    assert "\nfalse line" not in told
    assert not set(told) & {"\x1b", "\x07", "\r", "\u202e"}


def test_names_of_files_as_they_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever wrote them: one of thousands of folders takes no longer than it is long.

    (From Python 3.12 on ``pathlib`` asks each of a path's parents, of which it makes paths.)
    """

    def asked(*_: object) -> None:
        raise AssertionError("pathlib was asked")

    monkeypatch.chdir(tmp_path)
    deep = str(tmp_path) + "/*" * 5000 + "/k.cu"
    with monkeypatch.context() as patch:
        for name in ("is_relative_to", "relative_to"):
            patch.setattr(Path, name, asked)
        assert source_access.display_path(deep) == "*/" * 5000 + "k.cu"
        assert shown_path(deep) == "*/" * 5000 + "k.cu"
    matmul = str(library.get("matmul_tiled").path)
    for shown in (source_access.display_path, shown_path):
        assert (
            shown(matmul).replace("\\", "/")
            == "kernels/library/" + library.get("matmul_tiled").source
        )
    beside = f"{tmp_path}beside/k.cu"
    assert source_access.display_path(beside) == beside
    assert shown_path(beside) == "k.cu"
    assert source_access.display_path(str(tmp_path / "k.cu")) == "k.cu"
    assert source_access.display_path("") == ""
