"""Source texts made to keep whoever reads them busy (``docs/security.md``)."""

import pytest

from kernels.host.host_launches import host_launches
from kernels.source.structures import layout_of

DEEP = 5_000
KERNEL = "__global__ void k(float* a) {}\n"


@pytest.mark.slow_cases("text3")
@pytest.mark.parametrize(
    "text",
    [
        KERNEL + "int main(){ k<<<" + "(" * DEEP + "1" + ")" * DEEP + ",1>>>(0); }",
        KERNEL + "int main(){ k<<<" + "1+" * DEEP + "1,1>>>(0); }",
        KERNEL + "int main(){ k<<<1<<4000000000,1>>>(0); }",
        "".join(f"#define M{i} M{i + 1}\n" for i in range(DEEP)) + KERNEL
        + "int main(){ k<<<M0,1>>>(0); }",
        "".join(f"#define M{i} M{i + 1}+M{i + 1}\n" for i in range(60)) + KERNEL
        + "int main(){ k<<<M0,1>>>(0); }",
        KERNEL + "int main(){" + "".join(f"int v{i}=v{i + 1}*v{i + 1};" for i in range(60))
        + "int v60=2; k<<<v0,1>>>(0); }",
        KERNEL + "#define A\nint main(){ k<<<A,1>>>(0); }",
    ],
)  # fmt: skip
def test_host_code_that_is_hard_to_fold(text: str) -> None:
    """A launch is listed, its grid is not known: no recursion, and bounded work."""
    (found,) = host_launches(text)
    assert (found.kernel, found.grid) == ("k", None)


def test_host_code_in_deep_blocks() -> None:
    text = KERNEL + "int main(){" + "{" * DEEP + "k<<<3,1>>>(0);" + "}" * DEEP + "}"
    assert [launch.grid for launch in host_launches(text)] == [(3,)]


@pytest.mark.slow_cases("source7-None")
@pytest.mark.parametrize(
    ("source", "nbytes"),
    [
        ("namespace a{" * DEEP + "struct S{int a;};" + "}" * DEEP, 4),
        ("int x[]=" + "{" * DEEP + "}" * DEEP + "; struct S{int a;};", 4),
        ("struct S{int " + "*" * DEEP + "a;};", 8),
        ("struct S{int a[99999999999999];};", None),
        ("struct S{S a; int b;};", None),
        ("struct S{T a;}; struct T{S a;};", None),
        ("".join(f"struct S{i}{{S{i + 1} a,b;}};" for i in range(40))
         + "struct S40{char c;}; struct S{S0 a;};", None),
        ("".join(f"struct S{i}{{S{i + 1} a;}};" for i in range(300))
         + "struct S300{int a;}; struct S{S0 a;};", None),
    ],
)  # fmt: skip
def test_structures_that_are_hard_to_lay_out(source: str, nbytes: int | None) -> None:
    found = layout_of("S", {"k.cu": source})
    assert (found and found.nbytes) == nbytes
