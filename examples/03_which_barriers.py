"""Which barriers does a launch need? Take each one out, and look for hazards.

With one phase (K no larger than the tile) the second barrier of the tiled product has nothing
to protect: no tile is loaded again. With two phases both are needed.
"""

import numpy as np

import simulator
from kernels import Kernel, library
from simulator.fixes import judge_barriers

entry = library.get("matmul_tiled")
kernel = entry.kernel(tile=16)

for phases in (1, 2):
    size = (16, 16, 16 * phases)

    def rerun(edited: Kernel, size: tuple[int, ...] = size) -> simulator.Run:
        """The same launch of an edited kernel."""
        ready = entry.launch(size, tile=16, rng=np.random.default_rng(0))
        return simulator.launch(edited, ready.grid, ready.block, ready.args)

    print(f"M x N x K = {' x '.join(map(str, size))}")
    verdicts = judge_barriers(kernel, rerun(kernel), rerun)
    for verdict in verdicts:
        why = verdict.hazards[0].message if verdict.needed else "no hazard without it"
        print(f"  line {verdict.source.line}: {why}")
    assert [verdict.needed for verdict in verdicts] == [True, phases > 1]
