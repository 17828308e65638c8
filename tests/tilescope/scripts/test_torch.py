"""PyTorch's tensors and ``torch.cuda`` under ``tilescope exec``: no GPU, no change to a script.

Run where PyTorch is. The gate does not install it: PyPI's wheel for Linux loads CUDA's runtime
and its libraries, 3 GB of them, and there is none without.
"""

import textwrap
from pathlib import Path
from typing import Any

import pytest

import tilescope
from tests.support.torch_scripts import CORE, FAILS, TABLES, UNSET, WORKS
from tilescope.scripts.run import intercepted, run_script
from tilescope.scripts.virtual_device import RefusedError, VirtualDevice

torch = pytest.importorskip("torch", reason="PyTorch brings 3 GB of CUDA: not installed")
pytestmark = pytest.mark.filterwarnings("ignore")


def script(tmp_path: Path, text: str) -> tuple[int, str]:
    path = tmp_path / "script.py"
    path.write_text("import torch\n" + textwrap.dedent(text))
    return run_script(path, [], VirtualDevice())[:2]


@pytest.mark.parametrize("subject", WORKS)
def test_what_works(subject: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert script(tmp_path, WORKS[subject]) == (0, "")


@pytest.mark.parametrize("text", FAILS)
def test_what_is_refused(text: str, tmp_path: Path) -> None:
    code, end = script(tmp_path, text)
    assert code == 1
    assert FAILS[text] in end.splitlines()[-1]


ARGUMENTS: dict[str, Any] = {
    "nvtx.range_push": ["x"], "nvtx.mark": ["x"], "nvtx.range": ["x"], "nvtx.range_start": ["x"],
    "nvtx.range_end": [1], "set_device": [0], "manual_seed": [1], "manual_seed_all": [1],
    "device": [0], "device_of": [torch.zeros(1)], "device_index": [0], "set_device_index": [0],
    "set_device_idx": [0], "stream": [None], "StreamContext": [None],
    "cudaStatus": None, "Device": None, "OptState": None, "GradScaler": [],
    "custom_fwd": [abs], "custom_bwd": [abs],
}  # fmt: skip
"""What to call a stand-in with: ``None``: not at all; a name not here is called with nothing."""


def names(module: Any, seen: set[str]) -> Any:
    """Every public name of a module and of those below it."""
    seen.add(module.__name__)
    for name in dir(module):
        value = getattr(module, name)
        if name.startswith("_"):
            continue
        if isinstance(value, type(torch)):
            if value.__name__.startswith(module.__name__) and value.__name__ not in seen:
                yield from names(value, seen)
        elif callable(value) and not (isinstance(value, type) and issubclass(value, Exception)):
            yield f"{module.__name__}.{name}", value


@pytest.mark.parametrize("module", ["cuda", "accelerator"])
def test_every_public_name_works_or_is_refused(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_a_later_version() -> None: ...

    of_a_later_version.__module__ = f"torch.{module}"
    room = getattr(torch, module)
    monkeypatch.setattr(room, "of_a_later_version", of_a_later_version, raising=False)
    before = dict(vars(room))
    works, refused = set(), set()
    with intercepted(VirtualDevice()):
        stream = torch.cuda.Stream()
        with_streams = {"set_stream": [torch.cuda.default_stream()], "stream": [stream],
                        "set_rng_state": [torch.cuda.get_rng_state()],
                        "set_rng_state_all": [torch.cuda.get_rng_state_all()]}  # fmt: skip
        for name, value in names(room, set()):
            short = name.removeprefix(f"torch.{module}.")
            last = short.rpartition(".")[2]
            own = getattr(value, "__module__", None) or "torch"
            if own.partition(".")[0] not in ("torch", "tilescope"):
                continue  # what it imports from others
            given = (ARGUMENTS | with_streams).get(short, (ARGUMENTS | with_streams).get(last, []))
            try:
                if given is not None:
                    value(*given)
                works.add(last)
            except RefusedError as error:
                (line,) = str(error).splitlines()
                assert line.startswith(f"tilescope exec has no stand-in for torch.{module}.")
                assert "; " in line
                refused.add(last)
    assert vars(room) == before
    assert "of_a_later_version" in refused
    if module == "cuda":
        assert {"synchronize", "Event", "current_stream", "range_push"} <= works
        assert {"CUDAGraph", "make_graphed_callables", "memory_stats", "FloatTensor"} <= refused


def test_tensors_are_as_they_were() -> None:
    kept = {name: vars(torch.Tensor).get(name) for name in ("device", "is_cuda", "get_device")}
    with intercepted(VirtualDevice()):
        assert torch.zeros(1, device="cuda").is_cuda
    assert {name: vars(torch.Tensor).get(name) for name in kept} == kept
    assert torch.zeros(1).device.type == "cpu"
    assert isinstance(torch.Generator(), torch._C.Generator)


@pytest.mark.parametrize("words", [(), ("--faulty",)])
def test_what_nothing_wrote_is_not_read(words: tuple[str, ...], tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="the extra triton")
    (tmp_path / "script.py").write_text(UNSET)
    with tilescope.session() as made:
        assert run_script(tmp_path / "script.py", words, VirtualDevice(order=made.order))[:2] == (
            0,
            "",
        )
    found = [(h.kind, h.variable, h.element) for h in made.hazards]
    assert found == ([("uninitialised", "y", 150)] if words else [])


def test_tensors_of_two_devices_in_one_launch(tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="the extra triton")
    text = UNSET.replace("import torch", "") + "\nadd_to[grid](x, y.cpu(), 150, B=128)\n"
    code, end = script(tmp_path, text)
    assert code == 1
    assert "Pointer argument (at 1) cannot be accessed from Triton (cpu tensor?)" in end


@pytest.mark.parametrize("words", [(), ("--faulty",)])
@pytest.mark.parametrize(
    ("needs", "text", "kind"),
    [("triton", TABLES, "out-of-bounds"), ("cuda.core", CORE, "host-order")],
)
def test_addresses_of_tensors(
    needs: str, text: str, kind: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    """In a tensor that a kernel reads, and as a launch's argument, in PyTorch's stream."""
    pytest.importorskip(needs, reason=f"{needs} is not installed")
    (tmp_path / "script.py").write_text(text)
    with tilescope.session() as made:
        assert run_script(tmp_path / "script.py", words, VirtualDevice(order=made.order))[:2] == (
            0,
            "",
        )
    assert {h.kind for h in made.hazards} == ({kind} if words else set())


def test_memory_that_resize_adds_is_unset() -> None:
    machine = VirtualDevice()
    with intercepted(machine):
        x = torch.empty(2, device="cuda").resize_(1000)
        assert machine.tags.array(x).missing.view("u1").all()
        x.fill_(1)
        assert not machine.tags.array(x).missing.any()
