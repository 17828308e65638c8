"""Copies in bulk out of shared memory: who touches what they write before it is written."""

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests.simulator.races.in_flight.test_bulk import PTX
from tests.support.launches import SCHEDULES

OPCODES = {"cp"}
SENT = "cp.async.bulk.global.shared::cta.bulk_group [%o], [%s], 256;"
SUMMED = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%o], [%s], 256;"
ALL, SOURCE = "cp.async.bulk.wait_group 0;", "cp.async.bulk.wait_group.read 0;"
MEET, TOUCH = "bar.sync 0;", "mad.wide.u32 %w, %t, 4, %o;"
READ_IT = TOUCH + " ld.global.u32 %v, [%w];"


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("copy", "wait", "then", "kind"),
    [
        (SENT, "", "", ""),
        (SENT, SOURCE, "", ""),
        (SENT, ALL, MEET + READ_IT, ""),
        (SENT, ALL + SENT, "", ""),
        (SENT, "", MEET + READ_IT, "raw"),
        (SENT, SOURCE, MEET + READ_IT, "raw"),
        (SENT, "cp.async.bulk.wait_group 1;", MEET + READ_IT, "raw"),
        (SENT, "", "@!%p " + ALL + MEET + READ_IT, "raw"),
        (SENT, SOURCE + "ld.global.u32 %v, [%o];", "", "raw"),
        (SENT, SOURCE, MEET + TOUCH + "st.global.u32 [%w], %t;", "waw"),
        (SENT, SENT, "", "waw"),
        (SENT, SOURCE + SENT, "", "waw"),
        (SENT, SOURCE + SUMMED, "", "waw"),
        (SUMMED, SOURCE + SUMMED, "", ""),
        (SUMMED, SOURCE, MEET + TOUCH + "red.global.add.u32 [%w], %t;", ""),
        (SUMMED, ALL, MEET + READ_IT, ""),
        (SUMMED, SOURCE, MEET + READ_IT, "raw"),
    ],
)
def test_what_a_copy_writes_is_waited_for(
    copy: str, wait: str, then: str, kind: str, schedule: str | int
) -> None:
    text = PTX.replace("COPY", copy).replace(ALL, wait).replace("done:", "done:\n" + then)
    text = text.replace(";", ";\n")
    kernel = Kernel.from_ptx(text.replace("buffer[256]", "buffer[512]"), "k")
    out, data = np.zeros(512, np.uint8), np.ones(512, np.uint8)
    run = simulator.launch(kernel, 1, 64, [out, data, 256], schedule=schedule)
    assert [h.kind for h in run.hazards if h.severity == "error"] == [f"{kind}-race"] * bool(kind)
    for hazard in run.hazards:
        assert hazard.space == "global"
        assert "a copy in bulk that is under way" in hazard.message
        assert any("without .read" in note for note in hazard.notes)
        assert len({item.ptx_line for item in hazard.involved}) == 2


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("copy", [SENT, SUMMED])
@pytest.mark.parametrize("waits", ["3 4 40", "3 4", "4 40", "3 40", "40", ""])
def test_each_of_several_copies_is_waited_for(copy: str, waits: str, schedule: str | int) -> None:
    those = "setp.eq.u32 %p, %t, 3; setp.eq.or.u32 %p, %t, 4, %p; setp.eq.or.u32 %p, %t, 40, %p;"
    text = PTX.replace("setp.eq.u32 %p, %t, 3;", those).replace("COPY", copy)
    each = [f"setp.eq.u32 %p, %t, {n}; @%p {ALL}" for n in waits.split()]
    text = text.replace(ALL, "\n".join(each)).replace("done:", "done:" + MEET + READ_IT)
    kernel = Kernel.from_ptx(text.replace("buffer[256]", "buffer[512]"), "k")
    out, data = np.zeros(512, np.uint8), np.ones(512, np.uint8)
    run = simulator.launch(kernel, 1, 64, [out, data, 256], schedule=schedule)
    missing = [n for n in (3, 4, 40) if str(n) not in waits.split()]
    reads = [h for h in run.hazards if h.kind != "waw-race"]
    assert (reads == run.hazards) == (copy == SUMMED)
    assert [(h.kind, h.case) for h in reads] == [("raw-race", "sent")] * bool(missing)
    for hazard in reads:
        assert hazard.count == 64 * len(missing) - len(missing) * (len(missing) - 1) // 2
        assert hazard.involved[0].thread[0] in missing


@pytest.mark.parametrize(("wait", "races"), [(SOURCE, True), (ALL, False)])
def test_a_flag_hands_on_what_is_waited_for(wait: str, races: bool) -> None:
    flag = """
    bar.sync 0;
    .reg .b32 %b;
    mov.u32 %b, %ctaid.x;
    setp.eq.u32 %p, %b, 0;
    @%p red.release.gpu.global.add.u32 [%o+256], 1;
again:
    ld.acquire.gpu.global.u32 %v, [%o+256];
    setp.eq.u32 %p, %v, 0;
    @%p bra again;
    """
    text = PTX.replace("COPY", SENT).replace(ALL, wait).replace("done:", "done:" + flag + READ_IT)
    text = text.replace(
        "setp.eq.u32 %p, %t, 3;",
        """
    mov.u32 %v, %ctaid.x;
    mad.lo.u32 %v, %v, 32, %t;
    setp.eq.u32 %p, %v, 3;""",
    )
    run = simulator.launch(
        Kernel.from_ptx(text, "k"), 2, 32, [np.zeros(512, np.uint8), np.ones(256, np.uint8), 256]
    )
    assert [hazard.kind for hazard in run.hazards] == ["raw-race"] * races


FENCE = "fence.proxy.async;"
BROUGHT = "cp.async.ca.shared.global [area], [%o], 16; cp.async.wait_all;"
ARRIVE = "mbarrier.arrive.shared.b64 _, [bar];"
WAIT = "again: mbarrier.test_wait.parity.shared.b64 %q, [bar], 0; @!%q bra again;"


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("steps", "races"),
    [
        ([(0, 32, "bar.warp.sync -1;"), (0, 32, FENCE), (0, 128, MEET)], True),
        ([(0, 32, FENCE), (0, 32, "bar.warp.sync -1;"), (0, 128, MEET)], True),
        ([(0, 128, MEET), (0, 32, "bar.warp.sync -1;"), (0, 32, FENCE)], False),
        ([(0, 128, MEET), (0, 1, FENCE), (0, 128, MEET)], False),
        ([(0, 128, MEET), (1, 2, FENCE), (0, 32, "bar.warp.sync -1;")], False),
        ([(32, 96, "bar.sync 1, 64;"), (64, 96, FENCE), (0, 32, FENCE), (0, 128, MEET)], False),
        ([(32, 96, "bar.sync 1, 64;"), (96, 128, FENCE), (0, 32, FENCE), (0, 128, MEET)], True),
        ([(32, 128, "bar.sync 1, 96;"), (64, 96, FENCE), (96, 128, FENCE)], None),
        ([(33, 34, ARRIVE), (69, 70, WAIT), (64, 96, FENCE), (0, 128, MEET)], False),
        ([(33, 34, ARRIVE), (64, 96, FENCE), (69, 70, WAIT), (0, 128, MEET)], True),
        ([(33, 34, ARRIVE), (69, 70, WAIT), (70, 71, FENCE), (0, 128, MEET)], True),
        ([(33, 34, ARRIVE), (0, 1, WAIT), (0, 1, FENCE)], False),
        ([(33, 34, ARRIVE), (0, 1, FENCE), (0, 1, WAIT)], True),
        ([(33, 34, BROUGHT), (0, 128, "bar.sync 0;")], False),
        ([(33, 34, BROUGHT + "st.shared.b32 [area], 7;"), (0, 128, "bar.sync 0;")], True),
    ],
)
def test_a_fence_has_seen_the_write(
    steps: list[tuple[int, int, str]], races: bool | None, schedule: str | int
) -> None:
    """Thread 33 writes, thread 0 copies out: between the two a fence of who knows of the write."""
    if races is None:  # two fenced, and who copies has met the second
        steps, races = [*steps, (0, 32, "bar.sync 2, 64;"), (96, 128, "bar.sync 2, 64;")], False
    copy = "cp.async.bulk.global.shared::cta.bulk_group [%o], [area], 16;"
    ends = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
    body = ""
    for number, (low, high, what) in enumerate([(33, 34, "st.shared.b32 [area], 7;"), *steps,
                                                (0, 1, copy + ends)]):  # fmt: skip
        body += f"""
        setp.ge.u32 %p, %t, {low}; setp.lt.and.u32 %p, %t, {high}, %p; @!%p bra L{number};
        {what}
        L{number}:"""
    kernel = Kernel.from_ptx(f"""
        .version 9.0
        .target sm_90
        .visible .entry k(.param .u64 out) {{
        .reg .pred %p, %q; .reg .b32 %t; .reg .b64 %o; .shared .align 16 .b32 area[4];
        .shared .align 8 .b64 bar; mov.u32 %t, %tid.x; ld.param.u64 %o, [out];
        setp.ne.u32 %p, %t, 0; @%p bra ready; mbarrier.init.shared.b64 [bar], 1;
        ready: bar.sync 0;
        {body} ret; }}""")
    run = simulator.launch(
        kernel, 1, 128, [np.zeros(4, np.int32)], schedule=schedule, checks={"races"}
    )
    told = [(h.kind, h.severity, "fence.proxy.async" in h.message) for h in run.hazards]
    assert told == [("raw-race", "error", True)] * races
