"""Valid combinations of ``.version`` and ``.target`` in PTX.

PTX ISA, "Release Notes"; each pair was tested with ptxas 13.0. Architectures unknown to it are
rejected. Versions after its own, 9.0, are accepted, because newer compilers produce them.
"""

import re

_LAST = {1: 5, 2: 3, 3: 2, 4: 3, 5: 1, 6: 5, 7: 8, 8: 8}
"""The last version of each series; of those after it nothing is known."""
_NEWEST = 9
_SINCE = {
    "1.0": "10 11", "1.2": "12 13", "2.0": "20 21", "3.0": "30", "3.1": "35", "4.0": "32 50",
    "4.1": "37 52", "4.2": "53", "5.0": "60 61 62", "6.0": "70", "6.1": "72", "6.2": "82",
    "6.3": "75", "7.0": "80", "7.1": "86", "7.3": "88", "7.4": "87", "7.8": "89 90", "8.0": "90a",
    "8.6": "100 100a 101 101a", "8.7": "120 120a",
    "8.8": "100f 101f 103 103a 103f 120f 121 121a 121f", "9.0": "110 110a 110f",
}  # fmt: skip
"""The architectures that each version brought."""
_FIRST = {arch: version for version, archs in _SINCE.items() for arch in archs.split()}
_OPTIONS = ("texmode_unified", "texmode_independent", "debug")
"""What may follow the architecture."""


def refusal(version: str, names: list[str]) -> str:
    """Return why no GPU runs PTX of this version and target; empty if one does."""
    major, minor = map(int, version.split("."))
    if not 0 < major <= _NEWEST or minor > _LAST.get(major, minor):
        return f"there is no PTX of .version {version}, as far as this knows"
    for name in names:
        first = _FIRST.get(re.sub("^(sm|compute)_", "", name))
        if name not in _OPTIONS and not first:
            return f"there is no .target {ascii(name[:40])[1:-1]}, as far as this knows"
        if first and (major, minor) < tuple(map(int, first.split("."))):
            return f".target {name} needs .version {first}, not {version}"
    return ""
