"""What the shim adds to a program: to each call of the runtime, a tiny launch, copies of 64 MB.

``python -m benchmarks.shim`` compiles ``shim.cu`` and runs it under ``tilescope exec`` (needs nvcc
and g++), once with many calls and once with few: figures are CPU time of the program and of
tilescope together, for one call. The same launches are made in a process without a program; what
they take less is the shim's share. ``--beside COMMAND`` runs the program by another command, too.
"""

import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import simulator
from benchmarks.machine import command_line
from kernels import Kernel
from tilescope.programs.compile import find_nvcc
from tilescope.programs.executable import FLAGS

_SOURCE = Path(__file__).with_name("shim.cu")
_KERNEL = "__global__ void tiny(float *x) { x[threadIdx.x] += 1.0f; }"
_COUNTS = {"call": 20_000, "launch": 1_000, "to": 40, "from": 40}
_BYTES = 64 << 20


def launch_alone(count: int) -> float:
    """Return the CPU seconds of the program's launch in the simulator, without a program."""
    kernel = Kernel.from_cuda(_KERNEL, "tiny")
    device = simulator.Device()
    allocation = device.allocate(128)
    allocation.array[:] = 0
    start = time.process_time()
    for _ in range(count):
        simulator.launch(kernel, 1, 32, [np.uint64(allocation.address)], device=device)
    return (time.process_time() - start) / count


def cpu_seconds(command: list[str]) -> float:
    """Run a command; return the CPU seconds of it and its processes.

    Raises:
        RuntimeError: It fails; says what it wrote.
    """
    before = os.times()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError((done.stderr or done.stdout).strip())
    after = os.times()
    return (after.children_user + after.children_system
            - before.children_user - before.children_system)  # fmt: skip


def seconds_each(run: list[str], what: str) -> float:
    """Return the CPU seconds of one call, by the difference of two runs."""
    many = cpu_seconds([*run, what, str(_COUNTS[what])])
    return (many - cpu_seconds([*run, what, "0"])) / _COUNTS[what]


def main() -> None:
    """Print a table."""
    parser = command_line("shim", __doc__)
    parser.add_argument("--beside", metavar="COMMAND", help="another command that runs the program")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "shim")
        subprocess.run([str(find_nvcc()), *FLAGS.split(), "-o", program, str(_SOURCE)], check=True)
        runs = {"exec": [sys.executable, "-m", "tilescope", "exec", "--allow-none", program]}
        if options.beside:
            runs["beside"] = [*shlex.split(options.beside), program]
        print("CPU microseconds" + "".join(f"{name:>12}" for name in runs))
        for what in _COUNTS:
            figures = [seconds_each(run, what) for run in runs.values()]
            rate = "".join(
                f"  {_BYTES / one / 1e9:.2f} GB/s" for one in figures if _COUNTS[what] < 99
            )
            print(f"{what:<16}" + "".join(f"{one * 1e6:>12.1f}" for one in figures) + rate)
    print(f"{'launch alone':<16}{launch_alone(_COUNTS['launch']) * 1e6:>12.1f}")


if __name__ == "__main__":
    main()
