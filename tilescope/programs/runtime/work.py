"""Work of streams: executed at once, or recorded as a node of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from simulator import Source
from simulator.host_order import Stream

KERNEL, MEMCPY, MEMSET, HOST, GRAPH, EMPTY, WAIT_EVENT, RECORD_EVENT = range(8)
MEM_ALLOC, MEM_FREE = 10, 11
"""Of ``cudaGraphNodeType``."""


@dataclass
class StreamWork:
    """One operation of a stream.

    Attributes:
        source: The user's line that asks for it.
        node_type: The ``cudaGraphNodeType`` of a node that executes it.
    """

    source: Source
    node_type: ClassVar[int] = EMPTY

    def run(self, runtime: Any, queue: Stream, waits: bool) -> int:
        """Execute the operation in a stream.

        Args:
            runtime: The program's ``Runtime``.
            queue: The stream, as the order between launches knows it.
            waits: Whether the host waits for the operation.

        Returns:
            The error code.
        """
        return 0
