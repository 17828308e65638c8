"""How extensions are compiled and called, where no PyTorch is needed to see it."""

import ctypes
import json
import re
import runpy
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tilescope.extensions import build
from tilescope.extensions.in_process import ExtensionRuntime, InProcessConnection
from tilescope.programs.runtime.calls import UnsupportedCallError
from tilescope.programs.shim.build import exports
from tilescope.scripts.virtual_device import RefusedError, VirtualDevice

SCRIPT = '''\
from tilescope.extensions.sources import with_line

SOURCE = """
__global__ void k() {}
"""
OTHER = "one line"
JOINED = SOURCE + """
// at run time
"""
ESCAPED = """a\\n
b"""
found = [with_line(one) for one in (SOURCE, OTHER, JOINED, ESCAPED)]
'''


def test_a_source_has_the_line_of_its_literal(tmp_path: Path) -> None:
    path = tmp_path / 'my "script".py'
    path.write_text(SCRIPT)
    of_script = runpy.run_path(str(path))
    first, *others = of_script["found"]
    quoted = str(path).replace('"', '\\"')
    assert first == f'#line 3 "{quoted}"\n' + of_script["SOURCE"]
    assert others == [of_script[name] for name in ("OTHER", "JOINED", "ESCAPED")]


@pytest.mark.parametrize(
    ("given", "kept", "arch"),
    [
        (["-O3", "-gencode=arch=compute_80,code=sm_80", "-lineinfo"], ["-O3", "-lineinfo"], "90"),
        (["-gencode", "arch=compute_90a,code=sm_90a", "-DX=1"], ["-DX=1"], "90a"),
        (["--gpu-architecture", "sm_70", "-Xcompiler", "-O2"], ["-Xcompiler", "-O2"], "90"),
    ],
)
def test_the_ptx_is_ours_whatever_gpu_a_script_names(
    given: list[str], kept: list[str], arch: str
) -> None:
    assert build.without_target(given) == kept
    assert f"-arch=compute_{arch}" in build.target(given)


@pytest.mark.slow
@pytest.mark.parametrize("version", [12, 13])
def test_stubs_are_hidden_so_that_a_runtime_already_loaded_is_not_called(
    version: int, tmp_path: Path
) -> None:
    """PyTorch's wheels for CUDA load NVIDIA's own libcudart first."""
    (tmp_path / "stubs.S").write_text(build.stub_text(version))
    subprocess.run(["gcc", "-c", "stubs.S"], cwd=tmp_path, check=True)
    done = subprocess.run(["readelf", "-sW", "stubs.o"], cwd=tmp_path, check=True,
                          capture_output=True, text=True)  # fmt: skip
    found = re.findall(r"GLOBAL +(DEFAULT|HIDDEN) +\w+ (\w+)", done.stdout)
    assert [name for how, name in found if how == "DEFAULT"] == ["tilescope_call"]
    assert ("HIDDEN", "cudaLaunchKernel") in found
    assert ("HIDDEN", "cublasSgemm_v2") in found


def test_a_source_has_the_headers_of_the_operators_that_it_names(tmp_path: Path) -> None:
    operators = tmp_path / "ATen" / "ops"
    operators.mkdir(parents=True)
    for name in ("empty", "empty_like", "matmul", "tensor"):
        (operators / f"{name}.h").touch()
    text = "auto y = torch::empty_like(x);\nauto z = at::matmul(x, y), t = torch::tensor(1);"
    made = build.operator_headers(text, tmp_path)
    assert made == "#include <ATen/ops/empty_like.h>\n#include <ATen/ops/matmul.h>\n"


@pytest.mark.parametrize(
    ("text", "refused", "runs"),
    [
        ("torch::empty({2})", 0, 1),
        ("torch::tensor(1)", 1, 2),
        ("torch::empty({2}, torch::requires_grad())", 0, 1),
    ],
)
def test_all_headers_are_used_where_the_fewer_do_not_suffice(
    text: str, refused: int, runs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``requires_grad`` compiles with the fewer, but fails when it runs."""
    commands: list[list[str]] = []

    def compiler(command: list[str]) -> str:
        commands.append(command)
        if len(commands) <= refused:
            raise build.BuildError("no member named so")
        return ""

    monkeypatch.setattr(build, "_run", compiler)
    source = tmp_path / "main.cpp"
    source.write_text(text)
    tools = build.Toolchain(Path("nvcc"), 13, tmp_path, is_new_abi=True, key="")
    build.ExtensionSource("x", (source,))._compile_file(tools, source, tmp_path / "0.o")
    assert len(commands) == runs
    is_light = str(Path(build.__file__).parent / "light") in commands[-1]
    assert is_light == (refused == 0 and "requires_grad" not in text)


def test_a_changed_header_is_compiled_again(tmp_path: Path) -> None:
    header, record = tmp_path / "common.h", tmp_path / "headers.json"
    header.write_text("int a;")
    rule = f"0.o: {tmp_path}/main.cpp \\\n {header}\n"
    assert build.dependencies(rule) == [f"{tmp_path}/main.cpp", str(header)]
    record.write_text(json.dumps({str(header): build.content(header)}))
    assert build.is_current(record)
    header.write_text("int b;")
    assert not build.is_current(record)
    record.write_text("{damaged")
    assert not build.is_current(record)


def call(connection: InProcessConnection, name: str, *registers: int) -> int:
    """Call a function of the runtime as the bridge does."""
    index = next(i for i, one in enumerate(exports()) if one[1] == name)
    words = [*registers, *[0] * (6 - len(registers)), *[0] * 8, 0, 0, index, 1]
    frame = (ctypes.c_uint64 * 18)(*words)
    return int(connection.function(ctypes.pointer(frame)))


def test_an_exception_of_a_call_is_raised_when_the_extension_has_returned() -> None:
    from tilescope.programs.runtime import stand_ins

    assert stand_ins.MODULES
    runtime = ExtensionRuntime(VirtualDevice())
    pointer = ctypes.c_uint64()
    where = ctypes.addressof(pointer)
    assert call(runtime.calls, "cudaMalloc", where, 64) == 0
    assert runtime.device.find(pointer.value) is not None

    def unsupported(frame: Any) -> int:
        raise UnsupportedCallError("cudaIpcGetMemHandle has no stand-in")

    answer, runtime.calls.answer = runtime.calls.answer, unsupported
    assert call(runtime.calls, "cudaMalloc", where, 64) == 999
    runtime.calls.answer = answer
    assert call(runtime.calls, "cudaMalloc", where, 64) == 999  # nothing works any more
    text = call(runtime.calls, "cudaGetErrorString", 999)
    assert ctypes.string_at(text) == b"unknown error"
    with pytest.raises(RefusedError, match="cudaIpcGetMemHandle has no stand-in"):
        runtime.calls.raise_error()
    assert call(runtime.calls, "cudaFree", pointer.value) == 0


def test_streams_of_the_script_have_handles_in_extensions() -> None:
    machine = VirtualDevice()
    runtime = ExtensionRuntime(machine)
    side = machine.order.stream(blocking=False)
    handle = runtime.streams.handle_of(side)
    assert handle
    assert runtime.streams.handle_of(side) == handle
    assert runtime.streams.find(handle) is side
    assert runtime.streams.handle_of(machine.order.legacy) == 0
