"""The programs of this folder: how each is run, and what is expected of it.

A row is one ``tilescope check`` on one program. ``finds`` lists what is expected as
"kind severity line": the same in every schedule, nothing else beside it. A row that a
later part of the work will execute expects today's refusal in one line, and names it.
"""

from dataclasses import dataclass
from pathlib import Path

SCHEDULES = ("lockstep", "warps", "reverse", "1")


@dataclass(frozen=True)
class Defect:
    """One program, how it is run, and what is expected.

    Attributes:
        file: Below this folder.
        launch: Grid, block and arguments, as the command line takes them.
        finds: "kind severity line"; the line is one of those that the hazard names.
        refused: What the refusal's one line says (a regular expression), if it is refused.
        warned: What the report says besides (a regular expression).
        later: What will change the row.
        folded: What a report of ``finds`` tells along with itself, so: a lost update is one report.
        schedules: Under which it is run.
    """

    file: str
    entry: str
    launch: str
    finds: tuple[str, ...] = ()
    folded: tuple[str, ...] = ()
    refused: str = ""
    warned: str = ""
    later: str = ""
    schedules: tuple[str, ...] = SCHEDULES

    @property
    def exit(self) -> int:
        """The command's exit code."""
        return 2 if self.refused else int(any(" error " in found for found in self.finds))

    def words(self) -> list[str]:
        """The command line, but for its name and options of its own."""
        grid, block, *arguments = self.launch.split()
        file = str(Path(__file__).parent / self.file)
        return [file, self.entry, "--grid", grid, "--block", block, *arguments, "--no-fix-search"]


DEFECTS = (
    # The optimiser makes one store of the two, which it puts at the closing brace.
    Defect("check/fix_inside_if.cu", "two", "1 64 i32[1]",
           ("waw-race error 3", "waw-race error 8")),
    Defect("check/fix_loop_end.cu", "relax", "1 64 i32[64]=arange",
           ("raw-race error 9", "raw-race warning 9")),
    Defect("check/fix_one_statement.cu", "shift", "1 64 i32[65]=arange",
           ("war-race error 2", "war-race warning 2")),
    Defect("check/fix_two_stores.cu", "both", "1 64 f32[64]=arange f32[64]",
           ("raw-race error 6", "raw-race warning 6")),
    Defect("check/divbar3.cu", "k", "1 128 f32[128] 64", ("barrier-divergence warning 5",),
           warned="if"),
    Defect("check/divbar4.cu", "k", "2 128 f32[200] f32[200] 200",
           ("barrier-divergence warning 5",), warned="return"),
    Defect("check/fnaddr.cu", "k", "1 1 u64[1]"),
    Defect("check/global_data.cu", "k", "1 8 i32[1]"),
    Defect("check/grid_sync.cu", "k", "2 32 i32[65]", refused="needs a cooperative launch"),
    Defect("check/grid_sync.cu", "k", "2 32 i32[65] --cooperative"),
    Defect("check/header_line.cu", "k", "1 64 i32[64]", ("barrier-divergence warning 5",)),
    Defect("check/indirect.cu", "k", "1 32 i32[32]"),
    Defect("check/macro.cu", "k", "1 128 f32[128] f32[128]", ("raw-race error 8",)),
    Defect("check/multiline.cu", "k", "1 128 f32[128] f32[128]", ("raw-race error 8",)),
    Defect("check/one_warp_lost_update.cu", "count", "1 32 i32[32] i32[4]",
           ("waw-race error 1",), folded=("war-race warning 1",)),
    Defect("check/one_warp_lost_update.cu", "last", "1 32 i32[1]", ("waw-race error 2",)),
    Defect("check/oneline.cu", "k", "1 64 f32[64]", ("raw-race error 1",)),
    Defect("check/pairs.cu", "two_threads", "1 2 i64[1]", ("waw-race error 1",)),
    Defect("check/pairs.cu", "sixty_four", "1 64 i32[1]", ("waw-race error 2",)),
    Defect("check/reduce_braces.cu", "reduce", "2 256 f32[500]=ones f32[2] 500",
           ("raw-race error 9", "raw-race warning 9")),
    Defect("check/schedule_value.cu", "k", "1 64 i32[1]",
           ("war-race error 4", "war-race warning 4", "waw-race error 5", "waw-race warning 2")),
    Defect("check/syncwarp_mask.cu", "k", "1 32 i32[32]", ("bad-mask error 3",)),
    Defect("check/syncwarp_mask.cu", "shuffle", "1 32 i32[32]", ("bad-mask error 6",)),
    Defect("check/wrongidx.cu", "mm", "2,2 16,16 f32[32,32]=normal f32[32,32]=normal f32[32,32] 32",
           later="a reference can be given on the command line"),
    Defect("compile/clock.cu", "k", "1 32 i64[32]"),
    Defect("compile/cubreduce.cu", "k", "1 128 i32[128]=ones", schedules=("lockstep", "1")),
    Defect("compile/cubscan.cu", "k", "1 128 i32[128]=ones", schedules=("lockstep", "1")),
    # It takes ten seconds.
    Defect("compile/cubsort.cu", "k", "1 128 i32[256]=arange", schedules=("lockstep",)),
    Defect("compile/cut_loses_endif.cu", "k", "1 32 f32[32]"),
    Defect("compile/cut_loses_includes.cu", "k", "1 32 f32[32]"),
    Defect("compile/cut_loses_namespace_alias.cu", "k", "1 32 f32[32]"),
    Defect("compile/funcptr.cu", "k", "1 32 i32[32]"),
    Defect("compile/gridsync.cu", "k", "2 1 i32[2]", refused="needs a cooperative launch"),
    Defect("compile/gridsync.cu", "k", "2 1 i32[2] --cooperative"),
    Defect("compile/host_decl.cu", "k", "1 32 f32[32]"),
    Defect("compile/malloc.cu", "k", "1 32 u64[32]"),
    Defect("compile/recursion.cu", "k", "1 32 i32[32]"),
    Defect("compile/tex.cu", "k", "1 32 f32[32] 0", ("address-space error 1",),
           warned="null handle"),
    Defect("compile/tex.cu", "k", "1 32 f32[32] texture:linear:f32[4,32]=normal"),
    Defect("compile/tex_file.cu", "plain", "1 32 f32[32]"),
    Defect("compile/tex_file.cu", "k", "1 32 f32[32] texture:border:u8[4,32]",
           ("address-space error 2",)),
    Defect("compile/tex_file.cu", "s", "1 1 f32[1] surface:f32[2,4]"),
    Defect("compile/uint.cu", "k", "1 32 f32[32]"),
    Defect("compile/wrong_message.cu", "k", "1 32 u32[32] 32"),
    Defect("order/barred_false.cu", "k", "2 64 i32[8]=3 i32[8] 8"),
    Defect("order/cuda_atomic_source.cu", "k", "2 32 i32[2]"),
    Defect("order/scoped_atomic.cu", "k", "2 1 u32[1]", ("waw-race error 2",)),
    Defect("order/scoped_atomic.cu", "add", "4 32 u32[1]", ("waw-race error 3",)),
    Defect("order/spin_false_deadlock.cu", "kmain", "2 1 u32[1]", ("raw-race error 5",)),
    Defect("order/stf.cu", "k", "2 1 u32[1]", ("waw-race error 4",)),
    Defect("order/volatile_race.cu", "k", "2 1 i32[1]", ("waw-race warning 2",)),
    Defect("order/volatile_race.cu", "mp", "2 1 i32[1] i32[1] i32[1]", ("raw-race warning 4",)),
    Defect("order/volatile_race.cu", "inc", "1 128 i32[1]",
           ("war-race warning 6", "waw-race warning 6")),
    Defect("order/volatile_race.cu", "tree", "1 128 f32[1]",
           ("raw-race error 10", "raw-race warning 10")),
    Defect("run/const.cu", "k", "1 32 f32[32]", ("unset-constant warning 3",)),
    Defect("run/const.cu", "k", "1 32 f32[32] --symbol coeff=f32[4]=ones"),
    Defect("run/init.cu", "k", "2 32 i32[64]=ones"),
    Defect("run/naive_accumulate.cu", "mm", "4,4 8,8 i32[32,32] i32[32,32] i32[32,32] 32"),
    Defect("run/neg_index.cu", "k", "1 32 f32[32] f32[32]", ("out-of-bounds error 1",)),
    Defect("run/neg_index2.cu", "k", "1 32 f32[32] f32[32]", ("out-of-bounds error 1",)),
    Defect("run/printf.cu", "k", "1 32 i32[32]"),
    Defect("run/struct.cu", "k", "1 32 0", refused="struct",
           later="pointers in structs can be given"),
    Defect("random/barrier_per_block.cu", "k", "3 64 i32[512]"),
    Defect("random/false_deadlock_seed.cu", "k", "2 32 i32[1] i32[1] i32[1]"),
    Defect("random/false_deadlock_seed.cu", "spin", "8 32 i32[1]"),
    Defect("random/false_deadlock_slow_setter.cu", "k", "1 128 i32[256] 200"),
    Defect("random/false_deadlock_warps.cu", "k", "1 256 i32[256]"),
    Defect("random/race_memory.cu", "k", "4 64 i32[1] i32[256]=ones",
           ("war-race error 2",),
           folded=("war-race error 2", "war-race warning 2", "waw-race error 2")),
    Defect("random/rce.cu", "k", "1 32 i32[32]", refused="."),
    Defect("random/shared_or64.cu", "k", "1 64 u64[64]"),
    Defect("random/wrong_int64.cu", "sum", "1 32 i64[1] i64[32]=arange"),
    Defect("random/devzero.ptx", "k", "1 1 u32[1]", ("out-of-bounds error 20",)),
    Defect("random/leak.ptx", "k", "1 1 u32[1]", ("out-of-bounds error 20",)),
    Defect("random/negparam.ptx", "k", "1 1 u64[1]", refused="p"),
    Defect("random/rce.ptx", "k", "1 1 u64[1]", refused="."),
)  # fmt: skip
