"""Random programs on a GPU: what it makes of them against simulator and interpreter.

``python -m tests.fuzz.gpu make DIR --count 2400 --seed S`` writes modules of many kernels each,
and the hash of what simulator and interpreter both say every program leaves behind; a program
on which these two differ is printed and left out (exit code 1). ``python -m tests.fuzz.gpu run
DIR`` launches them on a GPU and compares, compiled at JIT levels 0 and 4. It needs neither NVRTC
nor the time that ``make`` took: PTX and inputs are carried along.

At level 0 machine code follows the PTX, and every byte counts. Above it ptxas may swap operands
and fold ``max x, x`` or ``neg`` away, of which PTX promises any NaN but not which: bytes that
hang on a NaN's sign and payload are left out there (``make`` finds them: it runs each program
once more with other NaNs).
"""

import argparse
import base64
import contextlib
import gzip
import hashlib
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from kernels import Kernel
from tests.fuzz import compare
from tests.fuzz.compare import Launch
from tests.fuzz.gpu_programs import HEADER, kernel_of, piece

PIECE = 50
"""Kernels of a module."""
NAN = {"f64": 0x7FFA5A5A5A5A5A5A, "f32": 0x7FDA5A5A, "f16": 0x7F5A, "bf16": 0x7FDA}
"""A NaN of each type that nothing else makes; others have its sign turned."""
LEVELS = (0, 4)


def digest(arrays: list[bytes], but: str = "") -> str:
    """The hash of arrays, without some bytes."""
    content = np.frombuffer(b"".join(arrays), np.uint8)
    if but:
        off = np.unpackbits(np.frombuffer(unpacked(but), np.uint8), count=len(content))
        content = np.where(off, np.uint8(0), content)
    return hashlib.sha256(content.tobytes()).hexdigest()[:20]


def packed(raw: bytes) -> str:
    return base64.b64encode(gzip.compress(raw)).decode()


def unpacked(text: str) -> bytes:
    return gzip.decompress(base64.b64decode(text))


def nan_bytes(launch: Launch, wanted: list[bytes]) -> str:
    """Which bytes of the arrays hang on the signs and payloads of NaNs, packed: four at a time."""
    off = np.zeros(sum(map(len, wanted)) // 4, bool)
    for negative in (False, True):  # ``copysign`` makes a number of a NaN's sign

        def other(bits: int, kind: str, negative: bool = negative) -> int:
            return NAN[kind] | negative << int(kind.lstrip("bf")) - 1

        changed = compare.expected(launch, nan=other)
        a, b = (np.frombuffer(b"".join(arrays), np.uint32) for arrays in (wanted, changed))
        off |= a != b
    return packed(np.packbits(np.repeat(off, 4)).tobytes()) if off.any() else ""


def carried(arg: Any) -> dict[str, Any]:
    """An argument as JSON."""
    raw = np.asarray(arg)
    array = isinstance(arg, np.ndarray)
    if array and not raw.any():
        return {"array": array, "zeros": raw.nbytes}
    return {"array": array, "bytes": packed(raw.tobytes())}


def given(argument: dict[str, Any]) -> Any:
    """The argument again: an array of words, or bytes."""
    raw = bytes(argument["zeros"]) if "zeros" in argument else unpacked(argument["bytes"])
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
    said = compare.against(launch, wanted, (schedule,), "none")
    if said:
        return "", f"program {number} (seed {seed + number}): {said}"
    but = nan_bytes(launch, wanted)
    entry = {
        "entry": launch.entry, "seed": seed + number, "grid": launch.grid, "block": launch.block,
        "kind": "ptx" if number % 3 else "cuda", "hash": digest(wanted),
        "but": but, "hash_but": digest(wanted, but), "args": [carried(a) for a in launch.args],
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


def run(folder: Path, levels: Sequence[int], skip: int = 0) -> int:
    """Launch all that is in a folder; 1 if the GPU differs.

    A program that fails leaves a process that can use the GPU no more: a fresh one does the
    rest, with all that this one was through with skipped.
    """
    from device import DeviceError, device_name, driver_version
    from device.session import context, quietly

    start = time.monotonic()
    counts = {"ptx": 0, "cuda": 0}
    wrong = nans = done = 0
    failed = ""
    with context(0):
        print(f"{device_name()}, driver's CUDA {driver_version()}")
        for path, level in itertools.product(sorted(folder.glob("module*.json.gz")), levels):
            content = json.loads(gzip.decompress(path.read_bytes()))
            programs = content["programs"][max(skip - done, 0) :]
            done += len(content["programs"]) - len(programs)
            if not programs:
                continue
            module = compiled(content["ptx"], programs, level)
            try:
                for program, arrays in launched(module, programs):
                    done += 1
                    counts[program["kind"]] += 1
                    verdict = judged(program, arrays, level)
                    nans += verdict == "nan"
                    if verdict == "differs":
                        wrong += 1
                        print(f"DIFFERS: {named(path, program, level)}", flush=True)
            except DeviceError as error:
                failed = f"FAILS: {path.name}, level {level}: {error}"
                break
            finally:
                quietly("cuModuleUnload", module)
    total = sum(counts.values())
    print(
        f"{total} launches ({counts['ptx']} PTX, {counts['cuda']} CUDA C++; JIT levels "
        f"{' and '.join(map(str, levels))}) in {time.monotonic() - start:.0f} s: {wrong} differ "
        f"from simulator and interpreter, {nans} more in the bits of NaNs alone"
    )
    if failed:
        print(failed, flush=True)
        again = ["run", str(folder), "--skip", str(done + 1), "--levels", *map(str, levels)]
        subprocess.run([sys.executable, "-m", "tests.fuzz.gpu", *again], check=False)
    return int(bool(wrong or failed) or not (total or skip))


def named(path: Path, program: dict[str, Any], level: int) -> str:
    what = f"{program['entry']}, {program['kind']}, seed {program['seed']}"
    return f"{path.name} {what}, level {level}"


def judged(program: dict[str, Any], arrays: list[bytes], level: int) -> str:
    """``same``, ``nan`` (above level 0: but for bytes that hang on a NaN's bits), ``differs``."""
    if digest(arrays) == program["hash"]:
        return "same"
    if level and program["but"] and digest(arrays, program["but"]) == program["hash_but"]:
        return "nan"
    return "differs"


def compiled(ptx: str, programs: list[dict[str, Any]], level: int) -> Any:
    """A module as the driver compiles it at a level."""
    from device import DeviceError
    from device.driver import bindings, call
    from device.session import load

    options = [bindings().CUjit_option.CU_JIT_OPTIMIZATION_LEVEL]
    text = ptx.encode() + b"\0"
    try:
        return call("cuModuleLoadDataEx", text, 1, options, [level], doing="compiling")
    except DeviceError:
        with contextlib.ExitStack() as stack:  # fails as well, with the compiler's words
            load(stack, Kernel.from_ptx(ptx, programs[0]["entry"]), None)
        raise


def launched(
    module: Any, programs: list[dict[str, Any]]
) -> Iterator[tuple[dict[str, Any], list[bytes]]]:
    """Each program of a module with what it leaves on the GPU."""
    from device.driver import call
    from device.session import quietly

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
            yield program, [arg.tobytes() for _, arg in pointers]


def main(words: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.gpu", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("folder", type=Path)
    making.add_argument("--count", type=int, default=2400)
    making.add_argument("--seed", type=int, default=1)
    making.add_argument("--jobs", type=int, default=1)
    running = commands.add_parser("run")
    running.add_argument("folder", type=Path)
    running.add_argument("--levels", type=int, nargs="+", default=LEVELS, help="of the JIT")
    running.add_argument("--skip", type=int, default=0, help="launches that were done before")
    options = parser.parse_args(words)
    if options.command == "make":
        return make(options.folder, options.count, options.seed, options.jobs)
    return run(options.folder, options.levels, options.skip)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
