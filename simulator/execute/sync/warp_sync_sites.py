"""Static facts about warp-synchronous instructions: copies, and memory order."""

from collections.abc import Sequence

from ...compile.program import CompiledBlock
from ...isa.decoded import roles


class DuplicatedSites:
    """Blocks that begin with the same warp-synchronous instruction except for its registers.

    Attributes:
        of: The numbers of these blocks, by the number of each.
    """

    def __init__(self, blocks: Sequence[CompiledBlock]) -> None:
        copies: dict[str, list[int]] = {}
        for block in blocks:
            if block.gate and block.gate.members:
                first = block.block.instructions[0]
                copies.setdefault(first.name, []).append(block.number)
        self.of = {number: tuple(numbers) for numbers in copies.values() for number in numbers}


class Ordering:
    """Blocks that begin with an instruction that orders its lanes' accesses.

    ``bar.warp.sync`` does, the others do not (CUDA C++ Programming Guide, "Warp Vote", "Warp
    Shuffle"). NVIDIA's ``cuda::pipeline`` invalidates its barriers (``mbarrier.inval``) for all
    lanes that one ``match.sync`` has counted; there ``match.sync`` counts as well.

    Attributes:
        blocks: Numbers of these blocks.
    """

    def __init__(self, blocks: Sequence[CompiledBlock]) -> None:
        instructions = (ins for block in blocks for ins in block.block.instructions)
        has_end = any(roles(ins).row.phase == "end" for ins in instructions)
        self.blocks = frozenset(
            block.number
            for block in blocks
            if block.warp_barrier
            or (has_end and block.gate and roles(block.block.instructions[0]).row.is_match)
        )
