"""Instructions of PTX that the simulator does not execute, and what they are about."""

from .table import plain

ABOUT = {
    "tensor cores": "tcgen05",
    "asynchronous copies": "tensormap multimem",
    "sm_100: clusters that take over the work of others": "clusterlaunchcontrol",
}

for about, opcodes in ABOUT.items():
    plain(*opcodes.split(), section=about)
