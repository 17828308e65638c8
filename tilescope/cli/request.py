"""Parsed command line of a launch."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Request:
    """Options of a command line, before validation.

    Attributes:
        stack: Bytes of a thread's stack; ``None``: the simulator's default.
        heap: Bytes of the kernel's heap, likewise.
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
    stack: int | None = None
    heap: int | None = None
    cluster: str | None = None
    expect: tuple[str, ...] = ()
    reference: str | None = None
    close: str | None = None
    launch: int = 0
    no_shared: bool = False
