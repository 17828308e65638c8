"""Parsed command line of a launch."""

from dataclasses import dataclass

from simulator.isa.memory.stack import STACK_BYTES
from simulator.memory.storage.heap import HEAP_BYTES


@dataclass(frozen=True)
class Request:
    """Options of a command line, before validation.

    Attributes:
        no_shared: Whether dynamic shared memory was explicitly set to none.
    """

    target: str
    words: tuple[str, ...] = ()
    size: str | None = None
    tile: int | None = None
    grid: str | None = None
    block: str | None = None
    shared: int = 0
    seed: int = 0
    arch: str | None = None
    build: str | None = None
    options: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    cooperative: bool = False
    stack: int = STACK_BYTES
    heap: int = HEAP_BYTES
    cluster: str | None = None
    expect: tuple[str, ...] = ()
    reference: str | None = None
    close: str | None = None
    launch: int = 0
    no_shared: bool = False
