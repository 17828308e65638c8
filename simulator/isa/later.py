"""Instructions of PTX that the simulator does not execute, and what they are about."""

from .table import plain

ABOUT = {
    "textures and surfaces": "tex tld4 txq suld sust sured suq istypep",
    "tensor cores": "tcgen05",
    "asynchronous copies": "tensormap multimem",
    "clusters": "mapa getctarank clusterlaunchcontrol",
    "video instructions": "vadd vsub vabsdiff vmin vmax vshl vshr vmad vset vadd2 vsub2 vavrg2 "
    "vabsdiff2 vmin2 vmax2 vset2 vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4",
}

for about, opcodes in ABOUT.items():
    plain(*opcodes.split(), section=about)
