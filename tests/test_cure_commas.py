"""Cures of lines with several statements: as many barriers as are needed, and no more."""

from pathlib import Path

import pytest
from test_cure_edits import cured

COMMAS = """\
__global__ void k(int* a, int n) {
    __shared__ int s[128];
    int t = threadIdx.x;
    for (int r = 0; r < n; ++r)
        s[t] = a[t] + r, a[t] = s[127 - t];
}
"""
THREE = COMMAS.replace("a[t] = s[127 - t];", "v = s[127 - t], a[t] = v;").replace(
    "threadIdx.x;", "threadIdx.x, v = 0;"
)
ONE_LINE = """\
__global__ void k(int* a, int n) {
    __shared__ int s[128];
    int t = threadIdx.x;
    { s[t] = a[t]; int v = s[127 - t]; s[t] = v + n; a[t] = s[(t + 64) % 128]; }
}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "line"),
    [
        (COMMAS, "{ s[t] = a[t] + r; __syncthreads(); a[t] = s[127 - t]; __syncthreads(); }"),
        (
            THREE,
            "{ s[t] = a[t] + r; __syncthreads(); v = s[127 - t]; __syncthreads(); a[t] = v; }",
        ),
        pytest.param(
            ONE_LINE,
            "{ s[t] = a[t]; __syncthreads(); int v = s[127 - t]; __syncthreads(); s[t] = v + n; "
            "__syncthreads(); a[t] = s[(t + 64) % 128]; }",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_line_of_several_statements_gets_all_that_it_needs(
    tmp_path: Path, source: str, line: str
) -> None:
    """They race as one hazard, which one of its barriers would leave as it is; and no more."""
    assert line in cured(tmp_path, source, 1, 128, "i32[128]=arange", 3)


@pytest.mark.slow
def test_expressions_with_commas_between_get_one_barrier_where_one_will_do(
    tmp_path: Path,
) -> None:
    body = "v = a[t], s[t] = v + n, v = s[127 - t], a[t] = v;"
    source = COMMAS.replace("threadIdx.x;", "threadIdx.x, v = 0;").replace(
        "    for (int r = 0; r < n; ++r)\n        s[t] = a[t] + r, a[t] = s[127 - t];",
        f"    {body}",
    )
    assert """
    v = a[t];
    s[t] = v + n;
    __syncthreads();
    v = s[127 - t];
    a[t] = v;
}
""" in cured(tmp_path, source, 1, 128, "i32[128]=arange", 3)
