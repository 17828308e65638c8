"""What is kept of a front end's PTX."""

import re


def short(ptx: str, shared: int) -> str:
    """PTX without debug sections (names apart), with the size of shared memory on top.

    Its version is lowered: it is a newer one only because the compiler is.
    """
    code, *sections = re.split(r"(?=\n\s*\.section)", ptx)
    text = code + "".join(s for s in sections if s.split()[1] == ".debug_str")
    text = re.sub(r"\.version .*", ".version 8.8", text)
    text = re.sub(r'(\.file\s+\d+ ").*/', r"\1", text)
    lines = [re.sub(r"\s*//.*", "", line) for line in text.splitlines()]
    return "\n".join([f"// shared: {shared}", *filter(str.strip, lines), ""])
