"""Records that native code and Python share: words of 64 bits, by their place.

Each constant is a word's number in its record; addresses are 8 times that. ``docs/native.md``
describes the slots of the race filter.
"""

from itertools import count

WORD = 8

_next = count().__next__

# -- the context of a launch -----------------------------------------------------
ALIVE = _next()  # lanes of the running warp that have not exited
EXISTING = _next()  # lanes of the running warp that the block has
MASK = _next()  # the lanes that run next, where a warp goes on
OTHERS = _next()  # blocks at which other lanes of the running warp stand
TURNS = _next()  # rounds of loops that wait, of the running warp to its next barrier
LETS_GO = _next()  # whether lanes at waiting loops let the others of the warp go first
YIELDS = _next()  # per basic block: whether such a loop begins there
AHEAD = _next()  # lanes that run before the others of the running warp
SERVED = _next()  # lanes at waiting loops that have let the others go first
WAITING = _next()  # lanes of the running warp in front of warp-synchronous instructions
STEP = _next()  # basic blocks that the running warp has run, for tokens
FUEL = _next()  # rounds of loops until native code returns to Python
WHY = _next()  # why native code gave up
WHERE = _next()  # the site or basic block of that
WARP = _next()
EPOCH = _next()  # of barrier intervals, one more at each barrier and block
BEGIN = _next()  # the running block's first epoch
COUNTS = _next()  # whether requests are counted
RACES = _next()  # whether races are looked for
UNINITIALISED = _next()  # whether reads of memory that nothing wrote are
ARRAYS = _next()  # address of the records of arrays
ARGUMENTS = _next()  # how many of those are arguments; then parameters, then variables
VARIABLES = _next()
SHARED = _next()
SHARED_BYTES = _next()
SHARED_SHADOW = _next()
SHARED_DEFINED = _next()
SHARED_GRAIN = _next()  # bits of the bytes of a location
GLOBAL_GRAIN = _next()
LOCAL = _next()
LOCAL_BYTES = _next()
LOCAL_DEFINED = _next()
SITES = _next()
THREADS_RUN = _next()  # per basic block: threads, warps, warps that parted, warps let go
WARPS_RUN = _next()
PARTED = _next()
RELEASED = _next()
TALLIES = _next()  # per guarded floating-point instruction: threads
WARP_EPOCHS = _next()  # per warp: barriers of the whole warp in this block
GROUPS = _next()  # per basic block: the running warp's lanes that stand there
GROUP_BITS = _next()  # the basic blocks where any do
GROUP_WORDS = _next()
PARKED = _next()  # per basic block: lanes held in front of its first instruction
AFFECTED = _next()  # per basic block: whether lanes there may have different tokens
TOKENS = _next()  # per lane of the running warp
SAVED = _next()  # per convergence point and lane
THREAD_X = _next()  # per thread, int32
THREAD_Y = _next()
THREAD_Z = _next()
BLOCK_X = _next()
BLOCK_Y = _next()
BLOCK_Z = _next()
GRID_X = _next()
GRID_Y = _next()
GRID_Z = _next()
BLOCK = _next()  # the block that runs
LAST = _next()  # and the one behind the last that is to run
RUNNING = _next()  # whether the block has begun
INTERVAL = _next()  # whether its warps go on behind a barrier
WARPS = _next()  # of a block
THREADS = _next()
FRAMES = _next()
FRAME_BYTES = _next()
FRAME_START = _next()  # what a frame holds at first
START = _next()  # the entry's first basic block
BLOCKS = _next()  # basic blocks
POINTS = _next()  # convergence points
ROUNDS = _next()  # per loop about barriers and thread: rounds, since the loop around it began one
HEADS = _next()  # how many such loops there are
ABOUT = _next()  # per basic block: which of them are about the barrier at its end
WARP_AT = _next()  # per warp: the basic block that it begins with, or the barrier that holds it
WARP_ALIVE = _next()  # per warp
KERNEL = _next()
CALLBACK = _next()  # calls the NumPy function of a step that has no native form
PARAMETERS = _next()
SCRATCH = _next()
ORDERED = _next()  # whether the order of atomics is looked at
IS_UNSURE = _next()  # whether the NumPy engine's order of warps is unknown
BATCH = _next()  # of the NumPy engine, from 1 on
MOMENT = _next()  # per level of the running warp's moment: basic block and count
MOMENT_DEPTH = _next()
SHARED_ORDER = _next()  # records of atomics by location
LATE_ARRAY = _next()  # the array of READ_BEFORE: its place among all
CONTEXT_WORDS = _next()

MAX_THREADS = 1024
MAX_TURNS = 4096
"""Rounds of a loop that waits, after which it may be spinning."""

# -- an array --------------------------------------------------------------------
_next = count().__next__
HOST = _next()
BASE = _next()
BYTES = _next()
WRITABLE = _next()
SHADOW = _next()  # address of its slots, or 0
ORDER = _next()  # address of its records of atomics, or 0
MISSING = _next()  # address of a byte for each of its bytes: 1 if nothing wrote it; or 0
READ_ONLY_LOADS = _next()  # whether ld.global.nc has read it
WRITTEN = _next()
TRACKED = _next()  # whether the race filter enters reads: from the first write on at the latest
UNTRACKED = _next()  # whether it has not entered some
TOUCHED = _next()  # addresses of a byte for each location, or 0: for each of ``TOUCHES``
_next(), _next(), _next()
ARRAY_WORDS = _next()

# -- a site: a load, store or atomic ---------------------------------------------
_next = count().__next__
OFFSET = _next()
FIRST = _next()  # bytes of shared memory that its address may be of
END = _next()
COUNTED = _next()
OPERATION = _next()
SIGNED = _next()
ORDER_CLASS = _next()  # equal for atomics that commute, whose results nothing reads; 0: none does
READ_ONLY = _next()  # ld.global.nc
TOUCH = _next()  # which of ``TOUCHES`` it is
FIGURES = _next()  # by space, eight each
FIGURES_END = FIGURES + 24
PATTERN_MASK = FIGURES_END  # the last pattern of addresses, and its figures
PATTERN_SPACE = PATTERN_MASK + 1
PATTERN_START = PATTERN_SPACE + 1
PATTERN_FIGURES = PATTERN_START + 1
PATTERN = PATTERN_FIGURES + 8
SITE_WORDS = PATTERN + 32

# -- why native code gives up ----------------------------------------------------
_next = count(1).__next__
OUT_OF_BOUNDS = _next()
MISALIGNED = _next()
READ_ONLY_ARRAY = _next()
NO_ARRAY = _next()
SEVERAL_SPACES = _next()
MAY_RACE = _next()
UNDEFINED = _next()
ABSENT_LANE = _next()
HELD_FOR_EVER = _next()
BARRIER_APART = _next()
TOO_LONG = _next()
STOPPED = _next()
READ_BEFORE = _next()
WAITS = _next()
OUT_OF_ORDER = _next()
REASONS = {
    OUT_OF_BOUNDS: "an access out of bounds", MISALIGNED: "a misaligned access",
    READ_ONLY_ARRAY: "a write to read-only memory", NO_ARRAY: "an address outside of all arrays",
    SEVERAL_SPACES: "lanes access several address spaces at once",
    MAY_RACE: "a race cannot be ruled out", UNDEFINED: "a read of memory that nothing wrote",
    ABSENT_LANE: "lanes of a warp-synchronous instruction are missing",
    HELD_FOR_EVER: "lanes wait for others of their warp",
    BARRIER_APART: "threads do not come to a barrier together",
    TOO_LONG: "more epochs than the race filter counts",
    STOPPED: "a trap, a failed assertion or a call of the system",
    READ_BEFORE: "an array is written after reads that the race filter has not entered",
    WAITS: "lanes wait for what others of their warp write",
    OUT_OF_ORDER: "results depend on the order of warps",
}  # fmt: skip

# -- what a kernel's function returns besides the number of a basic block ---------
DONE, GAVE_UP, PAUSED = -1, -2, -3

# -- the scratch area of memory accesses -------------------------------------------
LANE_WORD = 256
"""Bytes of a value for each of 32 lanes."""
ADDRESS_AT, VALUES_AT = 0, 1
"""Places in the scratch area, by ``LANE_WORD``: addresses, then elements."""
MAX_VALUES = 8
RESULTS_AT = VALUES_AT + MAX_VALUES
SCRATCH_AREAS = RESULTS_AT + MAX_VALUES
