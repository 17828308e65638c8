"""``python -m tests.approximate [form ...]``: the approximate functions over all their arguments.

``approximate.txt`` has the CRC-32 of an H200's results (driver 580.159) for 256 ranges of the
arguments' bits in order, of the upper words alone in double precision. There the unit takes and
gives one register of 32 bits, the upper word: the results for the lower words 0, 0x80000000 and
0xffffffff were the same.
"""

import argparse
import multiprocessing
import sys
import zlib
from pathlib import Path

import numpy as np

from kernels.ptx.module import Instruction
from simulator.isa.special import approximate

RANGES = 256


def measured() -> dict[str, list[int]]:
    """The CRCs that the hardware's results have, by instruction."""
    lines = Path(__file__).with_suffix(".txt").read_text().splitlines()
    return {line.split()[0]: [int(word, 16) for word in line.split()[1:]] for line in lines}


def simulated(form: str, number: int) -> int:
    """The CRC of the simulator's results for a range of arguments."""
    opcode, *modifiers = form.split(".")
    fn = approximate(Instruction(opcode, tuple(modifiers), (None, None), None, 1, None)).fn
    size = (1 << 16 if form.endswith("f16") else 1 << 32) // RANGES
    bits = np.arange(number * size, (number + 1) * size, dtype=np.uint64)
    with np.errstate(all="ignore"):
        if form.endswith("f64"):
            result = np.asarray(fn((bits << np.uint64(32)).view(np.float64))).view(np.uint64)
            assert not np.any(result & np.uint64(0xFFFFFFFF))
            return zlib.crc32((result >> np.uint64(32)).astype(np.uint32).tobytes())
        if form.endswith("f16"):
            return zlib.crc32(np.asarray(fn(bits.astype(np.uint16).view(np.int16))).tobytes())
        return zlib.crc32(np.asarray(fn(bits.astype(np.uint32).view(np.float32))).tobytes())


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
