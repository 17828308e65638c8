"""``python -m tests.studies.approximate [form ...]``: the approximate functions over all their
arguments.

``approximate.txt`` has the CRC-32 of an H200's results (driver of CUDA 13.0) for 256 ranges of the
arguments' bits in order, of the upper words alone in double precision. There the unit takes and
gives one register of 32 bits, the upper word: the results for the lower words 0, 0x80000000 and
0xffffffff were the same.
"""

import argparse
import multiprocessing
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.ptx.module import Instruction
from simulator.isa.scalar.special import approximate
from tests.simulator.isa.cases import right

RANGES = 256
TYPES: dict[str, tuple[Any, Any]] = {
    "f16": (np.uint16, np.int16), "f32": (np.uint32, np.float32), "f64": (np.uint64, np.float64),
}  # fmt: skip
"""In which words the bits stand, and in which arrays the simulator has them."""


def measured() -> dict[str, list[int]]:
    """The CRCs that the hardware's results have, by instruction."""
    lines = Path(__file__).with_suffix(".txt").read_text().splitlines()
    return {line.split()[0]: [int(word, 16) for word in line.split()[1:]] for line in lines}


def results(form: str, bits: NDArray[np.uint64]) -> NDArray[Any]:
    """The bits that the simulator makes of some arguments' bits."""
    opcode, *modifiers = form.split(".")
    fn = approximate(Instruction(opcode, tuple(modifiers), (None, None), None, 1, None)).fn
    word, register = TYPES[form[-3:]]
    with np.errstate(all="ignore"):
        return np.asarray(fn(bits.astype(word).view(register))).view(word)


def simulated(form: str, number: int) -> int:
    """The CRC of the simulator's results for a range of arguments."""
    size = (1 << 16 if form.endswith("f16") else 1 << 32) // RANGES
    bits = np.arange(number * size, (number + 1) * size, dtype=np.uint64)
    if not form.endswith("f64"):
        return zlib.crc32(results(form, bits).tobytes())
    result = results(form, bits << np.uint64(32))
    assert not np.any(result & np.uint64(0xFFFFFFFF))
    return zlib.crc32((result >> np.uint64(32)).astype(np.uint32).tobytes())


def within(form: str, bound: Callable[[int], Any]) -> Callable[[int], int]:
    """The hardware's result as a model, if it is what the manual states."""

    def model(x: int) -> int:
        got = int(results(form, np.array([x], np.uint64))[0])
        assert right(got, bound(x)), (form, hex(x), hex(got))
        return got

    return model


def main() -> None:
    """Compare all ranges, on all cores."""
    known = measured()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("form", nargs="*", choices=[*known, []], default=[])
    forms = parser.parse_args().form or list(known)
    failed = False
    with multiprocessing.Pool() as pool:
        for form in forms:
            found = pool.starmap(simulated, [(form, i) for i in range(RANGES)], chunksize=1)
            wrong = [i for i in range(RANGES) if found[i] != known[form][i]]
            failed |= bool(wrong)
            print(
                f"{form:<20} {RANGES - len(wrong)} of {RANGES} ranges equal",
                wrong[:8] or "",
                flush=True,
            )
    sys.exit(failed)


if __name__ == "__main__":
    main()
