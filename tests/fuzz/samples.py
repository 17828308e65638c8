"""Small PTX texts that have one of everything, and pieces to damage others with."""

_HEADER = ".version 8.6\n.target sm_90\n.address_size 64\n"

SAMPLES = (
    _HEADER
    + """\
.global .align 4 .u32 table[4] = {1, 2, 3, 0x10};
.const .f32 half = 0f3F000000;
.visible .entry k(
    .param .u64 p,
    .param .u32 n
)
.maxntid 256, 1, 1
{
.reg .pred %p<4>;
.reg .b32 %r<8>;
.reg .b64 %rd<6>;
.reg .f32 %f<4>;
.reg .f64 %fd<3>;
.loc 1 5 3
ld.param.u64 %rd1, [p];
ld.param.u32 %r1, [n];
mov.u32 %r2, %tid.x;
mul.wide.u32 %rd2, %r2, 4;
add.s64 %rd3, %rd1, %rd2;
setp.lt.u32 %p1, %r2, %r1;
@!%p1 bra $DONE;
ld.global.u32 %r3, [%rd3];
ld.const.f32 %f1, [half];
cvt.rn.f32.u32 %f2, %r3;
fma.rn.f32 %f3, %f1, %f2, 0f3F800000;
cvt.f64.f32 %fd1, %f3;
add.f64 %fd2, %fd1, 0d3FF0000000000000;
cvt.rzi.s32.f64 %r4, %fd2;
mov.u64 %rd4, table;
ld.global.u32 %r5, [%rd4+8];
mad.lo.s32 %r6, %r4, %r5, -3;
selp.b32 %r7, %r6, %r3, %p1;
st.global.u32 [%rd3], %r7;
$DONE:
ret;
}
.file 1 "sample.cu"
""",
    _HEADER
    + """\
.extern .shared .align 4 .b32 more[];
.visible .entry k(.param .u64 p)
{
.reg .pred %p<4>;
.reg .b32 %r<12>;
.reg .b64 %rd<6>;
.shared .align 16 .b8 room[512];
ld.param.u64 %rd1, [p];
mov.u32 %r1, %tid.x;
shl.b32 %r2, %r1, 2;
mov.u32 %r3, room;
add.u32 %r4, %r3, %r2;
st.shared.u32 [%r4], %r1;
bar.sync 0;
ld.shared.v2.u32 {%r5, %r6}, [room+8];
shfl.sync.bfly.b32 %r7|%p1, %r5, 1, 31, -1;
vote.sync.ballot.b32 %r8, %p1, -1;
atom.shared.add.u32 %r9, [room], 1;
red.shared.max.s32 [room+4], %r9;
bar.warp.sync -1;
mov.b64 %rd2, {%r7, %r8};
mov.b64 {%r10, %r11}, %rd2;
popc.b32 %r10, %r10;
barrier.sync 1, 64;
bar.red.popc.u32 %r11, 0, %p1;
cvta.to.global.u64 %rd3, %rd1;
cvt.u64.u32 %rd4, %r2;
add.s64 %rd5, %rd3, %rd4;
atom.global.cas.b32 %r9, [%rd5], %r10, %r11;
membar.gl;
ret;
}
""",
    _HEADER
    + """\
.func (.param .b32 out) twice(.param .b32 in)
{
.reg .b32 %a<3>;
ld.param.b32 %a1, [in];
add.s32 %a2, %a1, %a1;
st.param.b32 [out], %a2;
ret;
}
.visible .entry k(.param .u64 p, .param .align 8 .b8 s[16])
{
.local .align 8 .b8 __local_depot0[16];
.reg .pred %p<3>;
.reg .b32 %r<9>;
.reg .b64 %rd<5>;
.reg .b16 %h<4>;
ld.param.u64 %rd1, [p];
ld.param.v2.u32 {%r6, %r7}, [s+8];
mov.u64 %rd2, __local_depot0;
cvta.local.u64 %rd3, %rd2;
mov.u32 %r1, %tid.x;
mov.u32 %r8, 0;
$LOOP:
{
.reg .b32 temp;
.param .b32 param0;
st.param.b32 [param0], %r1;
.param .b32 retval0;
call.uni (retval0), twice, (param0);
ld.param.b32 %r2, [retval0];
}
st.u32 [%rd3+4], %r2;
ld.local.u16 %h1, [%rd2+4];
add.u32 %r8, %r8, 1;
setp.lt.u32 %p1, %r8, 3;
@%p1 bra.uni $LOOP;
$TABLE: .branchtargets $A, $B, $C;
and.b32 %r3, %r1, 3;
brx.idx %r3, $TABLE;
$A: mov.u32 %r4, 1; bra $C;
$B: mov.u32 %r4, 2;
$C:
cvt.u32.u16 %r5, %h1;
add.cc.u32 %r5, %r5, %r4;
addc.u32 %r5, %r5, %r6;
st.global.u32 [%rd1], %r5;
exit;
}
""",
)

NUMBERS = (
    "0", "1", "-1", "2", "7", "8", "08", "31", "32", "33", "64", "-8", "255", "4096", "65536",
    "2147483647", "2147483648", "4294967295", "4294967296", "9223372036854775807",
    "9223372036854775808", "18446744073709551615", "18446744073709551616", "1099511627776",
    "9" * 30, "9" * 5000, "0x" + "f" * 20, "0x", "0b101", "017", "1.5", "1e999", "-1e-400",
    "0f7F800000", "0f", "0dFFF8000000000001", "0xFFFFFFFF", "1000000", "999999999", "WARP_SZ",
)  # fmt: skip
"""Numbers near a limit, and what only looks like one."""

DIRECTIVES = (
    ".reg .b32 %x<4294967296>;", ".reg .b64 %r<9>;", ".reg .pred %r1;", ".reg .b128 %q<2>;",
    ".reg .f16x2 %y;", ".reg .v2 .b32 %z;", ".reg .b32 %n<-3>;", ".reg .b8 %c<3>;",
    ".shared .b8 big[1099511627776];", ".shared .align 3 .b8 odd[5];", ".shared .b32 none[0];",
    ".local .b8 stack[99999999];", ".local .b8 stack[64];", ".global .b8 g[1073741824];",
    ".global .u32 h[2] = {1, 2, 3};", ".global .u64 q = generic(table)+8;", ".const .u8 c[-4];",
    ".global .f32 f = 1e40;", ".global .u32 s = {{{{1}}}};", ".extern .shared .f64 dyn[];",
    ".param .b32 late;", ".param .align 0 .b8 z[4];", ".param .b8 huge[1099511627776];",
    '.file 1 "/dev/zero"', '.file 1 "/etc/passwd"', '.file 2 "a\nb"', '.file 99999999999 "x"',
    ".loc 1 0 0", ".loc 1 999999999999999999999 3",
    ".loc 2 7 0, function_name $x, inlined_at 1 5 3",
    ".loc 1 1 0, function_name $y, inlined_at 1 1 0", ".loc", ".loc 1", ".maxntid 0",
    ".maxntid -4", ".reqntid 99999999999999999999, 9, 9", ".reqntid 1", ".minnctapersm 4",
    ".maxnreg 16", '.pragma "nounroll";', ".pragma", ".version 99.9", ".target sm_10", ".target",
    ".address_size 32", ".section .debug_info { .b8 1 }", ".section x", ".entry k2() { ret; }",
    ".entry k() { ret; }", ".visible .entry", ".func f;",
    ".func (.reg .b32 %a) g (.reg .b32 %b) { ret; }", ".weak", ".alias a, b;", ".tex .u64 t;",
    ".global .texref t;", ".extern .func later;", ".reqnctapercluster 2", "{", "}", "$LOOP:", "k:",
    "ret;", "exit;", "trap;", "bar.sync 0;", "bar.arrive 1, 64;", "bar.sync 1, 64;",
    "barrier.sync 0, %r1;", "bar.sync %r1, 32;", "bra $LOOP;", "call twice;", "call k, ();",
    "call (r), twice, (p);", "call.uni __assertfail, ();", "@%p1 ret;", "@%p1 bar.sync 0;",
    "brx.idx %r1, $TABLE;", "$TABLE: .branchtargets $A;", "$T: .callprototype _ ();",
    "mov.b64 %rd1, {%r1, %r2};", "mov.b32 {%h1, %h2}, %r1;", "ld.param.u64 %rd1, [p-8];",
    "ld.param.u64 %rd1, [p+1099511627776];", "ld.global.v4.u32 {%r1, %r2, %r3, _}, [%rd1];",
    "st.global.u64 [%rd1], %rd1;", "ld.shared.u32 %r1, [room+2147483640];", "ld.u32 %r1, [0];",
    "shfl.sync.idx.b32 %r1, %r2, %r3, %r4, %r5;", "vote.sync.all.pred %p1, %p1, 0;",
    "activemask.b32 %r1;", "match.any.sync.b32 %r1, %r2, -1;", "redux.sync.add.s32 %r1, %r1, -1;",
    "div.s32 %r1, %r1, 0;", "rem.u64 %rd1, %rd1, 0;", "shl.b64 %rd1, %rd1, 99;",
    "cvt.rn.f16.f32 %h1, %f1;", "sqrt.rn.f64 %fd1, %fd1;", "prmt.b32 %r1, %r1, %r1, 0x7531;",
    "lop3.b32 %r1, %r1, %r2, %r3, 0x96;", "atom.global.add.f32 %f1, [%rd1], %f1;",
    "red.global.add.u64 [%rd1], %rd1;", "isspacep.shared %p1, %rd1;",
    "setp.eq.or.s32 %p1|%p2, %r1, 3, %p1;",
)  # fmt: skip
"""Lines to put anywhere."""
