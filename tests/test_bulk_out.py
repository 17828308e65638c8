"""Copies in bulk out of shared memory: who touches what they write before it is written."""

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests.launches import SCHEDULES
from tests.test_bulk import PTX

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
