"""What a table of measurements must say of where it was made."""

import argparse
import contextlib
import datetime
import platform
import shlex
import sys
from importlib import metadata

import numpy as np

import device
from kernels.compiler.nvrtc import nvrtc_version
from simulator.workers.pool import cores


def provenance(index: int = 0) -> list[str]:
    """Date, GPU, driver, versions and the command, as lines of Markdown.

    Raises:
        DeviceError: There is no GPU.
    """
    versions = [
        f"Python {platform.python_version()}",
        f"NumPy {np.__version__}",
        f"cuda-bindings {_version('cuda-bindings')}",
        f"NVRTC {nvrtc_version()}",
    ]
    module = sys.modules["__main__"].__spec__
    name = module.name if module is not None else sys.argv[0]
    command = shlex.join(["python", "-m", name, *sys.argv[1:]])
    return [
        f"{datetime.date.today():%Y-%m-%d}, {device.device_name(index)}, driver "
        f"{device.driver_release()} (CUDA {device.driver_version()}), {', '.join(versions)}:",
        f"`{command}`",
    ]


def command_line(name: str, text: str | None) -> argparse.ArgumentParser:
    """A benchmark's parser; ``--help`` shows the module's text as it stands."""
    return argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}", description=text,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip


def cpu_name() -> str:
    """The CPU's name."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def processor() -> str:
    """The CPU's name and how many cores this process may use."""
    return f"{cpu_name()}, {cores()} core{'s' * (cores() > 1)}"


def packages(*names: str) -> str:
    """Versions of packages, those of Python and the date included."""
    found = [f"{name} {_version(name)}" for name in names]
    return ", ".join([f"{datetime.date.today():%Y-%m-%d}", f"Python {platform.python_version()}",
                      *found])  # fmt: skip


def table(head: list[str], rows: list[list[str]], right: int = 1) -> list[str]:
    """A Markdown table; columns from number ``right`` on are right-aligned."""
    rule = ["---" if place < right else "---:" for place in range(len(head))]
    return [f"| {' | '.join(cells)} |" for cells in (head, rule, *rows)]


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "unknown"
