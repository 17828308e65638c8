"""Code that Numba links into a kernel's PTX: grid barriers are supplied, linked C++ is refused.

The barrier is that of cooperative groups: the driver gives a cooperative launch a word in which
blocks count themselves in (``%envreg1``, ``%envreg2``). Its sign bit turns when the last has come:
one block adds the rest to 2**31, each other one adds 1.
"""

import re

from ..errors import KernelError

_DECLARED = re.compile(r"^\.extern \.func\s*(?:\([^)]*\)\s*)?([\w$]+)\s*\([^)]*\)\s*;", re.M)
_SYSTEM = ("vprintf", "malloc", "free", "__assertfail")
_GRID = {
    "cudaCGGetIntrinsicHandle": """
.func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
	.reg .b32 %low, %high;
	.reg .b64 %word;
	mov.u32 %high, %envreg1;
	mov.u32 %low, %envreg2;
	mov.b64 %word, {%low, %high};
	st.param.b64 [handle], %word;
	ret;
}
""",
    "cudaCGSynchronize": """
.func (.param .b32 error) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
	.reg .pred %first, %master, %waiting;
	.reg .b32 %x, %y, %z, %blocks, %one, %before, %now, %turned;
	.reg .b64 %word;
	ld.param.b64 %word, [handle];
	barrier.sync 0;
	mov.u32 %x, %tid.x;
	mov.u32 %y, %tid.y;
	mov.u32 %z, %tid.z;
	or.b32 %x, %x, %y;
	or.b32 %x, %x, %z;
	setp.eq.u32 %first, %x, 0;
	@!%first bra $together;
	mov.u32 %x, %nctaid.x;
	mov.u32 %y, %nctaid.y;
	mov.u32 %z, %nctaid.z;
	mul.lo.u32 %blocks, %x, %y;
	mul.lo.u32 %blocks, %blocks, %z;
	mov.u32 %x, %ctaid.x;
	mov.u32 %y, %ctaid.y;
	mov.u32 %z, %ctaid.z;
	or.b32 %x, %x, %y;
	or.b32 %x, %x, %z;
	setp.eq.u32 %master, %x, 0;
	sub.u32 %one, 0x80000001, %blocks;
	selp.b32 %one, %one, 1, %master;
	atom.add.acq_rel.gpu.u32 %before, [%word+4], %one;
$waits:
	ld.acquire.gpu.u32 %now, [%word+4];
	xor.b32 %turned, %now, %before;
	setp.ge.s32 %waiting, %turned, 0;
	@%waiting bra $waits;
$together:
	barrier.sync 0;
	st.param.b32 [error], 0;
	ret;
}
""",
}
"""Bodies of what ``cuda.cg.this_grid().sync()`` calls."""


def linked(text: str, kernel: str) -> str:
    """Return a kernel's PTX with what it calls.

    Raises:
        KernelError: It calls C++ that Numba compiles and links for itself.
    """
    names = {match[1] for match in _DECLARED.finditer(text)}
    unknown = sorted(names - set(_SYSTEM) - set(_GRID))
    if unknown:
        half = "; its float16 and bfloat16 operators are such: compute in float32"
        raise KernelError(
            f"{kernel} calls {unknown[0]}, C++ that Numba links to the kernel on a GPU"
            + (half if "half" in unknown[0] or "bfloat16" in unknown[0] else "")
        )
    return _DECLARED.sub(lambda m: _GRID.get(m[1], m[0]), text)
