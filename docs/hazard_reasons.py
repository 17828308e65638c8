"""Why each kind of hazard is wrong on hardware: a paragraph of its page in the docs."""

REASONS = {
    "raw-race": (
        "Warps of a block advance independently, and so do blocks. Which of the two accesses "
        "comes first depends on the scheduler, on other kernels, on the GPU. A run that gives "
        "the right result proves nothing: the reader gets the old value as soon as its warp is "
        "ahead."
    ),
    "war-race": (
        "Warps of a block advance independently, and so do blocks. Which of the two accesses "
        "comes first depends on the scheduler, on other kernels, on the GPU. A run that gives "
        "the right result proves nothing: the reader gets the new value as soon as the writer's "
        "warp is ahead."
    ),
    "waw-race": (
        "Warps of a block advance independently, and so do blocks. Which of the two accesses "
        "comes first depends on the scheduler, on other kernels, on the GPU. A run that gives "
        "the right result proves nothing: the memory keeps whichever value came last. If all "
        "values are equal, today's GPUs do what is expected, and the languages still do not "
        "promise it."
    ),
    "exited-block": (
        "Shared memory of a block is given to another block when its block ends. An access "
        "through the cluster then reads or destroys the data of a stranger."
    ),
    "barrier-divergence": (
        "A barrier counts arriving warps, and not source lines. If some threads come to one "
        "barrier and others to another, the hardware may release both early, late or never, and "
        "what the barrier was to order is unordered."
    ),
    "deadlock": (
        "A thread that waits at a barrier uses no cycle and never gives up. The launch hangs, "
        "and the display driver or a watchdog ends it after seconds, with an error at a later "
        "call."
    ),
    "livelock": (
        "The threads spin, so the GPU is busy and the launch never ends. On some GPUs and "
        "schedules it may end, if blocks happen to run in the order that the loop waits for."
    ),
    "out-of-bounds": (
        "Neighbours of an array are other arrays. A read gives what is there; a write changes "
        "it, and the wrong result appears elsewhere. Only pages that are not mapped stop the "
        "kernel."
    ),
    "misaligned": (
        "Memory instructions of 2 to 16 bytes take aligned addresses alone. The launch ends "
        "with `misaligned address`, and the context is lost."
    ),
    "read-only": (
        "Constant memory is not written by kernels; the write is dropped, or the launch ends. "
        "An array that the caller passes as read-only is read by others, who do not expect it "
        "to change."
    ),
    "address-space": (
        "The instruction says shared, and the address is global, or the reverse: the hardware "
        "adds another base, and accesses something else."
    ),
    "uninitialised": (
        "Shared and local memory hold what the last block left there, and cudaMalloc gives "
        "memory of other programs' past. It is zero on a fresh GPU, and not in production."
    ),
    "bad-mask": (
        "A shuffle, vote or warp barrier waits for the lanes that its mask names. Lanes that do "
        "not come make it hang or give undefined values since Volta, whose lanes advance "
        "independently."
    ),
    "assert": (
        "The kernel itself says that this must not be. The launch ends with an assertion error, "
        "and all its results are lost."
    ),
    "trap": ("The kernel stops itself; the context is lost, and every later call fails."),
    "too-many-resources": (
        "The driver refuses the launch: nothing runs, and the output keeps its old contents. "
        "Without a look at cudaGetLastError() that is a wrong result."
    ),
    "unset-constant": (
        "A `__constant__` variable without an initial value is zero until the host copies into "
        "it. If the copy is forgotten, the kernel computes with zeros."
    ),
    "read-only-path": (
        "Loads of the read-only path go through L1 without looking at writes of this launch. "
        "They give the old value or the new one, by chance of the cache."
    ),
    "builds-differ": (
        "C++ leaves the expression undefined, and each build makes another use of that. The "
        "next compiler, or another line nearby, may change which one a program gets."
    ),
    "host-order": (
        "Streams are queues that run beside each other. Without an event between them the later "
        "work may start first, and does on a GPU with room for both."
    ),
    "host-pointer": (
        "The GPU and the host have address spaces of their own. Memory of malloc, new and the "
        "stack is not mapped on the GPU: the launch ends with `illegal memory access`. (Systems "
        "with unified page tables are the exception.)"
    ),
    "use-after-free": (
        "cudaFree gives the bytes to the next allocation. The kernel then reads or destroys its "
        "data, often without an error."
    ),
    "bad-copy": (
        "The runtime refuses the copy, or copies over the neighbour. In both cases the "
        "destination does not hold what the program goes on with."
    ),
    "launch-error": (
        "The launch does not happen, and the program goes on with old contents. The error stays "
        "in cudaGetLastError() until somebody looks."
    ),
    "leak": (
        "A program that does this in a loop runs out of memory. One that ends has no problem: "
        "therefore a note."
    ),
    "host-unset": (
        "The bytes are what the allocation held before. They are zero often enough to hide the "
        "mistake."
    ),
}
"""By kind. tests/architecture/test_docs.py holds the keys to the table of kinds."""
