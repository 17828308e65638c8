"""Barriers, fences, waits and ends of groups that are lost: each is given back.

``fix_losses.txt`` has the programs. Each line that ends with ``// lost`` is deleted in turn, and
``--fix`` has to put it back where it was; with ``// lost, moved`` it puts the same words elsewhere,
and with ``// lost: words`` these words.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import simulator
from kernels import Kernel
from simulator.fixes import find_fixes
from simulator.fixes.edits.statements import Syntax
from simulator.fixes.edits.sync_statements import named_barriers, remedies
from tests.simulator.fixes.fix_check import Section, check, sections

PROGRAMS = sections("fix_losses.txt")


def losses(section: Section) -> list[int]:
    return [i for i, line in enumerate(section.lines) if "  // lost" in line]


def without(section: Section, lost: int) -> tuple[str, str]:
    """Return the program without one of the lines that are lost in turn, and with it."""
    plain = [line.partition("  // lost")[0] for line in section.lines]
    at = losses(section)[lost]
    return "\n".join([*plain[:at], *plain[at + 1 :], ""]), "\n".join([*plain, ""])


LOST = [(name, i) for name, section in PROGRAMS.items() for i in range(len(losses(section)))]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "lost"), LOST)
def test_what_is_lost_is_given_back(name: str, lost: int, tmp_path: Path) -> None:
    section = PROGRAMS[name]
    file, told = tmp_path / "my.cu", tmp_path / "told.json"
    text, whole = without(section, lost)
    file.write_text(text)
    check(file, *section.words, "--fix", "--json", told)
    found = json.loads(told.read_text())["hazards"]
    fixes = [hazard["fix"] for hazard in found]
    assert any(fixes)
    assert all(h["fix"] for h in found if h["severity"] == "error")
    assert all("seed 1" in fix["verified"] for fix in fixes if fix)
    again = check(file, *section.words, "--fail-on", "warning")
    assert again.exit_code == 0, again.stdout
    given = file.read_text()
    _, _, how = section.lines[losses(section)[lost]].partition("  // lost")
    if how == ", moved":
        assert sorted(given.split()) == sorted(whole.split())
    elif how:
        assert how.removeprefix(": ") in given
        assert how.removeprefix(": ") not in text
    else:
        stripped = [[line.strip() for line in x.splitlines()] for x in (given, whole)]
        assert stripped[0] == stripped[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("missing_wait", "WAIT() after"),
        ("missing_commit", "COMMIT() after"),
        ("stage_reuse", "__syncthreads() after"),
        ("missing_proxy_fence", "fence.proxy.async"),
        ("wrong_phase", "round & 1 for RIGHT ? round : 0 on"),
    ],
)
def test_faulty_copies_are_fixed(name: str, fix: str) -> None:
    said = " ".join(check(f"faulty_{name}").stdout.split())
    assert fix in said.partition(" fix ")[2].partition(": verified, 0 errors left")[0]
    assert "lockstep, warps, reverse, seed 1 at size 2 and at another size 1" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "wait"),
    [
        ("cg::memcpy_async(all, s, in, n);", "cooperative_groups::wait(all);"),
        ("auto pipe = cuda::make_pipeline();", "pipe.consumer_wait();"),
        ("__pipeline_memcpy_async(s, in, 4);", "__pipeline_wait_prior(0);"),
        ("cuda::memcpy_async(a, s, in,n,b);", 'asm volatile("cp.async.wait_all;" ::: "memory");'),
    ],
)
def test_a_wait_is_written_as_its_library_writes_it(line: str, wait: str, tmp_path: Path) -> None:
    tried = remedies(Syntax({tmp_path: f"__global__ void k() {{ {line} }}".encode()}), "copy")
    assert tried is not None
    waits = [text for text, _ in tried if "commit" not in text]
    assert waits[0] == wait


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "lost", "text"),
    [
        ("copies by PTX", 0, "cp.async.wait_all;"),
        ("copies in bulk", 0, "fence.proxy.async.shared::cta;"),
        ("copies by functions around PTX", 0, "cp.async.commit_group;"),
        ("wgmma", 2, "wgmma.fence.sync.aligned;"),
    ],
)
def test_a_place_in_ptx_alone(name: str, lost: int, text: str, tmp_path: Path) -> None:
    source, _ = without(PROGRAMS[name], lost)
    made = Kernel.from_cuda(source, "k", "compute_90a")
    kernel = Kernel.from_ptx(made.ptx, made.entry)

    def rerun(edited: Kernel) -> simulator.Run:
        arguments = [np.zeros(512, np.float32), np.arange(512, dtype=np.float32), 4]
        return simulator.launch(edited, 1, 128, arguments, shared_bytes=512)

    run = rerun(kernel)
    errors = [hazard for hazard in run.hazards if hazard.severity == "error"]
    assert errors
    assert find_fixes(kernel, run, rerun) == len(errors)
    assert {(h.fix.text, h.fix.errors_left) for h in errors if h.fix} == {(text, 0)}


@pytest.mark.slow
def test_named_barriers_are_found_as_statements() -> None:
    statements = ("half_sync(half);", "MEET(3);", "__barrier_sync_count(5, 96);")
    for statement in statements:
        (section,) = (
            s for s in PROGRAMS.values() if f"  {statement}  // lost" in "\n".join(s.lines)
        )
        text = "\n".join(section.lines).encode()
        assert named_barriers(Syntax({Path("k.cu"): text}))[-1] == statement
    other = b'__global__ void k() { __syncthreads(); asm volatile("bar.sync 0;"); __syncwarp(); }'
    assert named_barriers(Syntax({Path("k.cu"): other})) == []
