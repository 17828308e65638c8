"""Random programs on a GPU: what it makes of them against simulator and interpreter.

``python -m tests.fuzz.gpu make DIR --count 2400 --seed S`` writes modules of many kernels each,
and the hash of what simulator and interpreter both say every program leaves behind; a program
on which these two differ is printed and left out (exit code 1). ``python -m tests.fuzz.gpu run
DIR`` launches them on a GPU and compares. It needs neither NVRTC nor the time that ``make`` took:
PTX and inputs are carried along.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import gzip
import hashlib
import json
import re
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from kernels import Kernel

from . import compare, cuda_program, ptx_statements
from .compare import Launch

HEADER = ".version 9.0\n.target sm_90\n.address_size 64\n"
VARIABLE = re.compile(
    r"^(?:\.(?:visible|weak|extern|common)\s+)*\.(?:global|const|shared)\b[^;{=\n]*?([\w$]+)\s*[\[;=]",
    re.M,
)
"""A variable of the module: its name."""
PIECE = 50
"""Kernels of a module."""


def kernel_of(number: int, seed: int) -> Launch | None:
    """The launch of one program, every third of them CUDA C++; ``None`` if a GPU may differ."""
    entry, own = f"k{number}", seed + number
    small = number % 4 != 0
    if number % 3:
        program = ptx_statements.draw(own, entry, small)
        if "activemask.b32" in program.names:  # which lanes run together is the GPU's choice
            return None
        return program.launch()
    # Without contraction: what the compiler fuses it has fused, and the driver fuses no more.
    return cuda_program.draw(own, entry, small).launch("device", ("-fmad=false",))


def piece(launch: Launch) -> str:
    """A program's own text, without header and line information, its names made unique."""
    header = r"^\s*\.(?:version|target|address_size|file|loc)\b.*$"
    text = re.sub(header, "", launch.ptx, flags=re.M)
    text = re.sub(r"^\s*//.*$", "", text, flags=re.M)
    text = re.sub(r"^\s*\.section\b.*?^\s*\}", "", text, flags=re.M | re.S)
    for name in set(VARIABLE.findall(text)):
        text = re.sub(rf"(?<![\w$]){re.escape(name)}(?![\w$])", f"{launch.entry}_{name}", text)
    return re.sub(r"\n\s*\n+", "\n", text)


def digest(arrays: list[bytes]) -> str:
    return hashlib.sha256(b"".join(arrays)).hexdigest()[:20]


def carried(arg: Any) -> dict[str, Any]:
    """An argument as JSON."""
    raw = np.asarray(arg)
    array = isinstance(arg, np.ndarray)
    if array and not raw.any():
        return {"array": array, "zeros": raw.nbytes}
    return {"array": array, "bytes": base64.b64encode(gzip.compress(raw.tobytes())).decode()}


def given(argument: dict[str, Any]) -> Any:
    """The argument again: an array of words, or bytes."""
    raw = bytes(argument.get("zeros", 0)) or gzip.decompress(
        base64.b64decode(argument.get("bytes", b""))
    )
    return np.frombuffer(raw, np.uint64).copy() if argument["array"] else raw


def made(number: int, seed: int) -> tuple[str, dict[str, Any] | str] | None:
    """A program's text, and its launch and expected hash, or what is wrong with it."""
    launch = kernel_of(number, seed)
    if launch is None:
        return None
    schedule = compare.SCHEDULES[number % len(compare.SCHEDULES)]
    text = piece(launch)
    launch.ptx = HEADER + text
    wanted = compare.expected(launch)
    said = compare.against(launch, wanted, (schedule,))
    if said:
        return "", f"program {number} (seed {seed + number}): {said}"
    entry = {
        "entry": launch.entry, "seed": seed + number, "grid": launch.grid, "block": launch.block,
        "kind": "ptx" if number % 3 else "cuda", "hash": digest(wanted),
        "args": [carried(a) for a in launch.args],
    }  # fmt: skip
    return text, entry


def make(folder: Path, count: int, seed: int, jobs: int) -> int:
    """Write the modules; 1 if simulator and interpreter differ somewhere."""
    folder.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    texts: list[str] = []
    entries: list[dict[str, Any]] = []
    total = modules = failed = 0

    def flush() -> None:
        nonlocal modules
        if texts:
            name = f"module{modules:03}"
            content = {"ptx": HEADER + "\n".join(texts), "programs": list(entries)}
            (folder / f"{name}.json.gz").write_bytes(gzip.compress(json.dumps(content).encode()))
            modules += 1
            texts.clear()
            entries.clear()
            print(f"{total} programs, {time.monotonic() - start:.0f} s", flush=True)

    for result in drawn(seed, jobs):
        if result is None:
            continue
        text, entry = result
        if isinstance(entry, str):
            print(entry, flush=True)
            failed += 1
            continue
        texts.append(text)
        entries.append(entry)
        total += 1
        if len(texts) == PIECE or total == count:
            flush()
        if total == count:
            break
    print(f"{total} programs in {modules} modules; simulator and interpreter differ in {failed}")
    return int(failed > 0)


def drawn(seed: int, jobs: int) -> Iterator[Any]:
    """Programs without end, on several cores."""
    with ProcessPoolExecutor(jobs) as pool:
        number = 0
        while True:
            futures = [pool.submit(made, number + i, seed) for i in range(10 * jobs)]
            for future in futures:
                yield future.result()
            number += len(futures)


def run(folder: Path) -> int:
    """Launch all that is in a folder; 1 if the GPU differs."""
    from device import device_name, driver_version
    from device.session import context

    start = time.monotonic()
    counts = {"ptx": 0, "cuda": 0}
    wrong: list[str] = []
    with context(0):
        print(f"{device_name()}, driver's CUDA {driver_version()}")
        for path in sorted(folder.glob("module*.json.gz")):
            content = json.loads(gzip.decompress(path.read_bytes()))
            for program, found in launched(content["ptx"], content["programs"]):
                counts[program["kind"]] += 1
                if found != program["hash"]:
                    what = f"{program['entry']}, {program['kind']}, seed {program['seed']}"
                    name = f"{path.name} {what}"
                    wrong.append(name)
                    print(f"DIFFERS: {name}", flush=True)
    total = sum(counts.values())
    print(
        f"{total} programs ({counts['ptx']} PTX, {counts['cuda']} CUDA C++) in "
        f"{time.monotonic() - start:.0f} s: {len(wrong)} differ from simulator and interpreter"
    )
    return int(bool(wrong) or not total)


def launched(ptx: str, programs: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str]]:
    """Each program of a module with the hash of what it leaves on the GPU."""
    from device import DeviceError
    from device.driver import call
    from device.session import load, quietly

    try:
        module = call("cuModuleLoadDataEx", ptx.encode() + b"\0", 0, [], [], doing="compiling")
    except DeviceError:
        with contextlib.ExitStack() as stack:  # fails as well, with the compiler's words
            load(stack, Kernel.from_ptx(ptx, programs[0]["entry"]), None)
        raise
    try:
        for program in programs:
            function = call("cuModuleGetFunction", module, program["entry"].encode())
            args = [given(a) for a in program["args"]]
            with contextlib.ExitStack() as stack:
                values, pointers = [], []
                for arg in args:
                    if isinstance(arg, bytes):
                        values.append(np.frombuffer(arg, np.uint8).copy())
                        continue
                    pointer = call("cuMemAlloc", arg.nbytes)
                    stack.callback(quietly, "cuMemFree", pointer)
                    call("cuMemcpyHtoD", pointer, arg.ctypes.data, arg.nbytes)
                    pointers.append((pointer, arg))
                    values.append(np.array([int(pointer)], np.uint64))
                table = np.array([v.ctypes.data for v in values], np.uint64)
                shape = [(*program[k], 1, 1)[:3] for k in ("grid", "block")]
                call(
                    "cuLaunchKernel", function, *shape[0], *shape[1], 0, 0, table.ctypes.data, 0,
                    doing=f"launching {program['entry']}",
                )  # fmt: skip
                call("cuStreamSynchronize", 0, doing=f"running {program['entry']}")
                for pointer, arg in pointers:
                    call("cuMemcpyDtoH", arg.ctypes.data, pointer, arg.nbytes)
                yield program, digest([arg.tobytes() for _, arg in pointers])
    finally:
        quietly("cuModuleUnload", module)


def main(words: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.gpu", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("folder", type=Path)
    making.add_argument("--count", type=int, default=2400)
    making.add_argument("--seed", type=int, default=1)
    making.add_argument("--jobs", type=int, default=1)
    commands.add_parser("run").add_argument("folder", type=Path)
    options = parser.parse_args(words)
    if options.command == "make":
        return make(options.folder, options.count, options.seed, options.jobs)
    return run(options.folder)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
