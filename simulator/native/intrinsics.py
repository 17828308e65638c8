"""Operations of the runtime's functions that Python has no operator for (``translate.py``).

All values are 64-bit integers, addresses among them. These bodies are never executed.
"""


def load8(address: int) -> int:
    """Return the byte at an address, zero-extended."""
    raise NotImplementedError


def load16(address: int) -> int:
    """Return the two bytes at an address, zero-extended."""
    raise NotImplementedError


def load32(address: int) -> int:
    """Return the four bytes at an address, zero-extended."""
    raise NotImplementedError


def load64(address: int) -> int:
    """Return the eight bytes at an address."""
    raise NotImplementedError


def store8(address: int, value: int) -> int:
    """Write the low byte of a value."""
    raise NotImplementedError


def store16(address: int, value: int) -> int:
    """Write the low two bytes of a value."""
    raise NotImplementedError


def store32(address: int, value: int) -> int:
    """Write the low four bytes of a value."""
    raise NotImplementedError


def store64(address: int, value: int) -> int:
    """Write a value."""
    raise NotImplementedError


def stack(words: int) -> int:
    """Return the address of so many uninitialised words of 64 bits that last for the call."""
    raise NotImplementedError


def fill(address: int, byte: int, count: int) -> int:
    """Write one byte so many times."""
    raise NotImplementedError


def count_bits(value: int) -> int:
    """Return how many bits are set."""
    raise NotImplementedError


def lowest_bit(value: int) -> int:
    """Return the position of the lowest set bit; 64 if there is none."""
    raise NotImplementedError


def highest_bit(value: int) -> int:
    """Return the position of the highest set bit; -1 if there is none."""
    raise NotImplementedError


def below(one: int, other: int) -> bool:
    """Return whether one value is less than another, both unsigned."""
    raise NotImplementedError


def sum_f32(one: int, other: int) -> int:
    """Return the bits of a sum of two float32 numbers, given as bits; of a NaN any."""
    raise NotImplementedError


def sum_f64(one: int, other: int) -> int:
    """Return the bits of a sum of two float64 numbers, given as bits; of a NaN any."""
    raise NotImplementedError


def call_kernel(
    address: int, context: int, frame: int, scratch: int, parameters: int, thread_x: int,
    thread_y: int, thread_z: int, start: int,
) -> int:  # fmt: skip
    """Call a kernel's native function (``kernel_code.POINTERS``)."""
    raise NotImplementedError
