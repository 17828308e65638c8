"""Instructions of PTX that the simulator does not execute, and what they are about."""

from .table import register_effect_only

ABOUT = {
    "tensor cores of sm_100: use wgmma or mma": "tcgen05",
    "tensor maps that a kernel changes: make one for each array": "tensormap",
    "memory of several GPUs at once: use ld, st or red": "multimem",
    "clusters that take over others' work, of sm_100: use atom": "clusterlaunchcontrol",
}

for about, opcodes in ABOUT.items():
    register_effect_only(*opcodes.split(), section=about)
