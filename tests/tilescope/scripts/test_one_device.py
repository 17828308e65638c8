"""Memory of the simulated GPU is one device's for all front ends: addresses in it stay."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tilescope
from simulator import Hazard
from tests.support.pointer_scripts import EMBEDDED, FREED, MISTAKES, MIXED, RUNTIME
from tilescope.scripts.run import run_script
from tilescope.scripts.virtual_device import VirtualDevice

pytestmark = pytest.mark.filterwarnings("ignore")


def run(tmp_path: Path, text: str, **how: Any) -> tuple[list[Hazard], Any]:
    path = tmp_path / "script.py"
    path.write_text(text)
    with tilescope.session() as made:
        end = run_script(path, [], VirtualDevice(order=made.order, **how))
        assert end[:2] == (0, "")
    return made.hazards, made


@pytest.mark.parametrize("name", EMBEDDED)
def test_addresses_in_memory_are_followed(name: str, tmp_path: Path) -> None:
    for needs in (name, "torch") if name == "triton" else (name,):
        pytest.importorskip(needs, reason=f"{needs} is not installed")
    assert run(tmp_path, EMBEDDED[name])[0] == []


@pytest.mark.parametrize("name", FREED)
def test_what_they_point_to_may_be_gone(name: str, tmp_path: Path) -> None:
    pytest.importorskip(name, reason=f"{name} is not installed")
    found, _ = run(tmp_path, FREED[name])
    assert {hazard.kind for hazard in found} == {"out-of-bounds"}
    assert all(hazard.variable.startswith("memory freed") for hazard in found)


@pytest.mark.parametrize("kind", MISTAKES)
def test_a_mistake_of_the_host_has_its_line(kind: str, tmp_path: Path) -> None:
    found, _ = run(tmp_path, MISTAKES[kind])
    assert [hazard.kind for hazard in found] == [kind]
    lines = MISTAKES[kind].splitlines()
    here = next((n for n, line in enumerate(lines, 1) if line.endswith("# here")), 0)
    if kind == "leak":
        assert found[0].notes == (f"allocated at script.py:{here}",)
    elif kind == "host-unset":
        assert "cuMemcpyDtoH(made" in found[0].involved[0].source.code
    else:
        assert found[0].involved[0].source.line == here


def test_front_ends_share_memory(tmp_path: Path) -> None:
    for needs in ("torch", "numba_cuda"):
        pytest.importorskip(needs, reason=f"{needs} is not installed")
    assert run(tmp_path, MIXED)[0] == []


PING_PONG = """
a, b, c = (ok(driver.cuMemAlloc(4)) for _ in range(3))
put(a, np.zeros(1, np.float32))
table = ok(driver.cuMemAlloc(8))
kernel = ok(driver.cuModuleGetFunction(module, b"copy"))
for source, target in ((a, b), (c, b)):
    ok(driver.cuLaunchKernel(
        kernel, 1, 1, 1, 1, 1, 1, 0, 0, ((source, target), (None, None)), 0))
for one in (a, b, c, table):
    ok(driver.cuMemFree(one))
"""


def test_a_sample_has_the_launches_that_are_given_unset_memory(tmp_path: Path) -> None:
    own = 'extern "C" __global__ void copy(const float *s, float *d) { d[0] = s[0] * 2; }\n'
    head = MISTAKES["leak"].rpartition("\nx = ")[0]
    text = head.replace("struct Link", own + "struct Link", 1) + PING_PONG
    found, _ = run(tmp_path, text, sample=1)
    assert [hazard.kind for hazard in found] == ["uninitialised"]


def test_the_runtime_api_shares_handles_with_the_drivers(tmp_path: Path) -> None:
    (hazard,) = run(tmp_path, RUNTIME)[0]
    assert hazard.kind == "bad-copy"
    assert "68 bytes of the destination end 4 bytes past" in hazard.message


def test_more_managed_allocations_than_there_are_addresses_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(
        "from cuda.bindings import driver\n"
        "made = [driver.cuMemAllocManaged(4, 1) for _ in range(1377)]\n"
    )
    # In a process of its own: what is alive at a script's end stays mapped.
    words = [sys.executable, "-m", "tilescope", "exec", str(path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    why = "managed memory of 4 bytes: 1,376 managed and pinned allocations are alive"
    assert why in " ".join(done.stderr.split())
    assert done.returncode == 2
