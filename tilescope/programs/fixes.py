"""Fixes in the sources of a program: searched on the launches that had hazards.

``LaunchKeeper`` keeps the memory that a launch with errors began with. ``find_fixes`` compiles the
kernel from the user's source, in both builds, and searches edits as ``tilescope check`` does, each
tried on a copy of that memory.
"""

import shutil
import subprocess
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import simulator
from kernels import Kernel, KernelError
from simulator import Device, Hazard, Run, SimulatorError
from simulator.fixes import Watch

from ..check.builds import merge, same_finding
from ..check.checker import Checker, Verdict
from ..check.launcher import Launcher
from ..check.policy import Policy, judge
from ..cli.target import Target
from ..sessions.recording import Session

_FOR_NVRTC = ("-I", "-D", "-std", "-U", "--std", "--use_fast_math")
"""How words for nvcc begin that NVRTC takes as well."""


@dataclass(frozen=True)
class FaultyLaunch:
    """A launch that had errors, with the device's memory before it.

    Attributes:
        args: Bytes of each parameter.
        how: Further arguments of ``simulator.launch``, without ``device``.
        run: What it gave.
    """

    kernel: Kernel
    grid: Sequence[int]
    block: Sequence[int]
    args: Sequence[Any]
    shared_bytes: int
    how: dict[str, Any]
    memory: Device
    run: Run


@dataclass
class LaunchKeeper:
    """The first launch of each kernel that had an error."""

    launches: dict[str, FaultyLaunch] = field(default_factory=dict)
    _before: Device | None = None

    def before(self, kernel: Kernel, device: Device | None) -> None:
        """Copy the memory of a launch that is about to be made, unless one is stored already."""
        is_new = device is not None and self._key(kernel) not in self.launches
        self._before = device.copy() if device and is_new else None

    def after(
        self, kernel: Kernel, grid: Sequence[int], block: Sequence[int], args: Sequence[Any],
        shared_bytes: int, how: dict[str, Any], run: Run,
    ) -> None:  # fmt: skip
        """Keep the launch if it has errors."""
        memory, self._before = self._before, None
        if memory is None or not any(h.severity == "error" for h in run.hazards):
            return
        rest = {name: value for name, value in how.items() if name != "device"}
        self.launches[self._key(kernel)] = FaultyLaunch(
            kernel, grid, block, args, shared_bytes, rest, memory, run
        )

    @staticmethod
    def _key(kernel: Kernel) -> str:
        return f"{kernel.sha256} {kernel.entry}"


@dataclass
class _OnDevice(Launcher):
    """Launches on copies of a device's memory."""

    memory: Device = field(default_factory=Device)
    ptx: str = ""

    def observe(
        self, kernel: Kernel, checks: str | Collection[str], schedule: str | int,
        target: Target | None = None, counters: str = "none",
        symbols: dict[str, Any] | None = None,
    ) -> tuple[Run, list[Any]]:  # fmt: skip
        """See ``Launcher.observe``; there are no arrays to return."""
        target, device = target or self.target, self.memory.copy()
        device.copy_variables(self.ptx, kernel.ptx)
        run = simulator.launch(
            kernel, target.grid, target.block, target.args, target.shared_bytes, schedule, checks,
            step_limit=self.step_limit, counters=counters, limits="none", workers="all",
            device=device, **target.how,
        )  # fmt: skip
        return run, []


def find_fixes(
    made: Session, keeper: LaunchKeeper, sources: Sequence[Path], words: Sequence[str],
    policy: Policy, watch: Watch,
) -> tuple[str, ...]:  # fmt: skip
    """Search fixes for the hazards of a session's launches, and set ``Hazard.fix``.

    Args:
        made: The session, already judged by the policy.
        keeper: Its launches with errors.
        sources: Files that the program was compiled from.
        words: Words for nvcc.
        policy: As for the session.
        watch: Follows each search and may stop it.

    Returns:
        Why there was no search for some kernels, a sentence each.
    """
    refused = []
    for recorded in keeper.launches.values():
        hazards = [h for launch in made.launches if launch.kernel.entry == recorded.kernel.entry
                   for h in launch.run.hazards]  # fmt: skip
        try:
            verdict = _verdict(recorded, sources, words, policy)
        except (KernelError, SimulatorError, ValueError, OSError) as error:
            reason = (str(error).splitlines() or ["refused"])[0]
            refused.append(f"no search for fixes in {recorded.kernel.name}: {reason}")
            continue
        checker, found = verdict
        checker.find_fixes(found, watch)
        for hazard in hazards:
            hazard.fix = next(
                (one.fix for one in found.hazards if one.fix and _same_finding(one, hazard)), None
            )
    return tuple(refused)


def _same_finding(one: Hazard, other: Hazard) -> bool:
    """Whether hazards of the two compilers' code are one finding."""
    family = (one.kind, one.space) == (other.kind, other.space)
    return same_finding(one, other) or (family and one.places == other.places)


def _verdict(
    recorded: FaultyLaunch, sources: Sequence[Path], words: Sequence[str], policy: Policy
) -> tuple[Checker, Verdict]:
    """Run a launch again, with the kernel from its source in both builds."""
    kernel = _from_source(recorded.kernel, sources, words)
    target = Target(
        kernel.name, kernel, tuple(recorded.grid), tuple(recorded.block), list(recorded.args),
        recorded.shared_bytes, file=str(sources[0]), how=recorded.how,
    )  # fmt: skip
    launcher = _OnDevice(
        target, policy=policy, quiet=True, memory=recorded.memory, ptx=recorded.kernel.ptx
    )  # fmt: skip
    built, runs = {}, []
    for build in ("device", "source"):
        built[build] = launcher.kernel(build)
        run, _ = launcher.observe(built[build], "all", "lockstep", counters="all")
        run.hazards = judge(policy, run.hazards, run.kernel)
        runs.append(run)
    return Checker(launcher), Verdict(target, runs, merge(runs), kernels=built)


def _from_source(kernel: Kernel, sources: Sequence[Path], words: Sequence[str]) -> Kernel:
    """Compile a program's kernel with NVRTC from the user's file that has it.

    Raises:
        KernelError: None of the sources has it.
    """
    options = [word for word in words if word.startswith(_FOR_NVRTC)]
    known = {Path(file).resolve() for file in kernel.sources}
    last: Exception = KernelError("its source is none of the files given")
    for source in sorted(sources, key=lambda path: path.resolve() not in known):
        for name in _names(kernel.entry):
            try:
                made = Kernel.from_cuda(source, name, options=options)
            except (KernelError, OSError) as error:
                last = error
                continue
            if made.params == kernel.params:
                return made
    raise KernelError(str(last))


def _names(entry: str) -> list[str]:
    """Return C++ spellings of a mangled kernel: ``tiled<16>``, ``scale(float*, int)``."""
    tool = shutil.which("c++filt")
    if not entry.startswith("_Z") or tool is None:
        return [entry]
    done = subprocess.run([tool, entry], capture_output=True, text=True, check=False)
    full = done.stdout.strip().replace("(anonymous namespace)::", "")
    depth, end = 0, len(full)
    for at in range(len(full) - 1, -1, -1):  # back to what opens the parameters
        depth += {")": 1, "(": -1}.get(full[at], 0)
        if depth == 0 and full[at] == "(":
            end = at
            break
    name = full[:end].removeprefix("void ")
    return [name] if full.startswith("void ") else [name, full]
