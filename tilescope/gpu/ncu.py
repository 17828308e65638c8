"""Nsight Compute: run a launch under ``ncu`` and compare its counters with the simulator's.

``ncu`` runs ``tilescope _launch`` in a child process: once with the driver's compiler at level 0,
where machine code follows the PTX one to one, and once at the default level.
"""

import csv
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from simulator import Counters

from ..cli.errors import UserError

METRICS = {
    "global_load.requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "global_load.sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "global_load.distinct_bytes": "smsp__sass_data_bytes_mem_global_op_ld.sum",
    "global_store.requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "global_store.sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "global_store.distinct_bytes": "smsp__sass_data_bytes_mem_global_op_st.sum",
    "shared_load.requests": "smsp__inst_executed_op_shared_ld.sum",
    "shared_load.wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared_load.bank_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "shared_load.distinct_bytes": "smsp__sass_data_bytes_mem_shared_op_ld.sum",
    "shared_store.requests": "smsp__inst_executed_op_shared_st.sum",
    "shared_store.wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "shared_store.bank_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "shared_store.distinct_bytes": "smsp__sass_data_bytes_mem_shared_op_st.sum",
    "bulk_load.requests": "sm__sass_inst_executed_op_tma_ld.sum",
    "bulk_load.sectors": "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld.sum",
    "bulk_store.requests": "sm__sass_inst_executed_op_tma_st.sum",
    "bulk_store.sectors": "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st.sum",
    "bulk_atomic.requests": "sm__sass_inst_executed_op_tma_red.sum",
    "bulk_atomic.sectors": "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_red.sum",
    "fma_f32": "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    "add_f32": "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",
    "mul_f32": "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum",
}
"""The simulator's counters (``docs/counters.md``) and the metric that each one equals."""

COPIES = {
    "global_load.distinct_bytes": "sm__sass_data_bytes_mem_global_op_ldgsts.sum",
    "shared_store.requests": "sm__sass_inst_executed_op_ldgsts.sum",
    "shared_store.wavefronts": "sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum",
    "shared_store.bank_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum",
    "shared_store.distinct_bytes": "sm__sass_data_bytes_mem_shared_op_ldgsts.sum",
}
"""What ``cp.async`` adds to these counters: the GPU counts it by itself."""
ASKED = (*METRICS.values(), *COPIES.values())

LAUNCH = (
    "launch__registers_per_thread",
    "launch__shared_mem_config_size",
    "launch__occupancy_limit_blocks",
    "launch__occupancy_limit_registers",
    "launch__occupancy_limit_shared_mem",
    "launch__occupancy_limit_warps",
)
"""What ncu says of the launch itself; every GPU it knows has these."""

NOISY = tuple(
    metric for name, metric in METRICS.items() if name.endswith(("wavefronts", "bank_conflicts"))
)
"""Warps that collide in shared memory add to these, now and then: the least reading counts."""
LAUNCHES = 10
"""Launches measured, for the noisy counters."""

Readings = dict[str, int]
"""By metric; of noisy ones the least, and under ``max_of(metric)`` the most."""
_TIMEOUT = 300


def max_of(metric: str) -> str:
    """Return the key of a noisy metric's highest reading."""
    return f"{metric} (most)"


@dataclass(frozen=True)
class Figure:
    """One counter with its three readings.

    Attributes:
        name: Name as in ``docs/counters.md``.
        simulator: The simulator's count.
        level0, default: Readings of ncu at either level; ``None`` if the GPU lacks the metric.
        max_value: Highest reading at level 0 of a counter that varies from launch to launch;
            ``level0`` is the lowest.
    """

    name: str
    simulator: int
    level0: int | None
    default: int | None
    max_value: int | None = None

    @property
    def equal(self) -> bool:
        """Whether the simulator's count equals the GPU's at level 0."""
        return self.level0 is None or self.simulator == self.level0

    @property
    def varies(self) -> bool:
        """Whether the GPU's readings vary more than they differ from the simulator's."""
        if self.equal or self.max_value is None or self.level0 is None:
            return False
        return 0 < self.level0 - self.simulator <= self.max_value - self.level0

    @property
    def verdict(self) -> str:
        """``=``, ``~`` if the readings vary too much, or ``NOT``."""
        return "=" if self.equal else "~" if self.varies else "NOT"


def figures(counters: Counters, level0: Readings, default: Readings) -> list[Figure]:
    """Return every counter with its readings, except those that are zero throughout."""
    found = []
    for name, metric in METRICS.items():
        group, _, field = name.partition(".")
        value = getattr(counters, group)
        ours = int(getattr(value, field) if field else value)
        more = COPIES.get(name, "")
        readings = ((level0, metric), (default, metric), (level0, max_of(metric)))
        values = [each[key] + each.get(more, 0) if key in each else None for each, key in readings]
        figure = Figure(name, ours, *values)
        if any((figure.simulator, figure.level0, figure.default)):
            found.append(figure)
    return found


def find_ncu() -> str:
    """Return the path of ``ncu``.

    Raises:
        UserError: It is not installed.
    """
    path = shutil.which("ncu")
    if path is None:
        raise UserError(
            "counters needs Nsight Compute: ncu is not on the PATH (it comes with the CUDA "
            "toolkit); without it, tilescope run shows the simulator's counters"
        )
    return path


def measure(words: Sequence[str], level: int | None) -> Readings:
    """Run some launches under ncu.

    ``words``: command line of ``tilescope _launch``. ``level``: of the driver's compiler; ``None``:
    its default.

    Raises:
        UserError: ncu failed; the message contains its own.
    """
    metrics = ",".join((*ASKED, *LAUNCH))
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "ncu.csv"
        command = [
            find_ncu(), "--csv", "--page", "raw", "--print-units", "base",
            "--clock-control", "none",  # counts need no fixed clock, and setting one needs rights
            "--metrics", metrics, "--log-file", str(log),
            # -P: nothing in the working folder is taken for a module.
            sys.executable, "-P", "-m", "tilescope", "_launch", *words, "--launches", str(LAUNCHES),
        ]  # fmt: skip
        if level is not None:
            command += ["--jit-level", str(level)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_TIMEOUT, check=False
            )
        except subprocess.TimeoutExpired:
            raise UserError(f"ncu did not end within {_TIMEOUT} s") from None
        text = log.read_text(errors="replace") if log.is_file() else ""
    readings = parse(text)
    if done.returncode or not readings:
        raise UserError(_failure(text, done.stderr, done.returncode))
    return readings


def parse(text: str) -> Readings:
    """Return the metrics of ``ncu --csv --page raw``; those of the first launch if all are equal.

    Its messages start with ``==``. Then there is a line of names, one of units, and one for each
    launch. A metric that the GPU lacks reads ``n/a`` and is omitted.
    """
    lines = [line for line in text.splitlines() if line.startswith('"')]
    rows = list(csv.reader(lines))
    if len(rows) < 3:
        return {}
    columns: dict[str, list[int]] = {}
    for row in rows[2:]:
        for name, value in zip(rows[0], row, strict=False):
            try:
                columns.setdefault(name, []).append(round(float(value.replace(",", ""))))
            except ValueError:  # names, dates, n/a
                continue
    readings = {}
    for name in (*ASKED, *LAUNCH):
        found = columns.get(name)
        if found:
            readings[name] = min(found) if name in NOISY else found[0]
            if name in NOISY and max(found) > min(found):
                readings[max_of(name)] = max(found)
    return readings


def _failure(log: str, stderr: str, code: int) -> str:
    """Return the messages of ncu or its child, errors first."""
    lines = [line.strip() for line in (*log.splitlines(), *stderr.splitlines())]
    telling = [line for line in lines if "==ERROR==" in line or line.startswith("error:")]
    said = telling or [line for line in lines if line] or [f"exit code {code}, no output"]
    text = said[0].replace("==ERROR==", "").strip()
    if "ERR_NVGPUCTRPERM" in text:
        text += " - an administrator can allow it: developer.nvidia.com/ERR_NVGPUCTRPERM"
    return f"ncu gave no counters: {text}"
