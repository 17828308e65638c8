"""Lost fences where one function hands on for another, on the way back, deep inside loops."""

from pathlib import Path

import pytest
from test_cures import check, launch

LOCK = """\
struct Mutex {
    int* word;
    __device__ void lock() {
        while (atomicCAS(word, 0, 1) != 0) {}
        __threadfence();  // lost
    }
    __device__ void unlock() {
        __threadfence();  // lost
        atomicExch(word, 0);
    }
};
__global__ void k(int* data, int* word) {
    Mutex mutex{word};
    if (threadIdx.x == 0) {
        mutex.lock();
        data[0] += 1;
        mutex.unlock();
    }
}
"""
POST = """\
__device__ void tell(int* flag) { atomicExch(flag, 1); }
__device__ void post(int* flag) {
    __threadfence();  // lost
    __syncthreads();
    if (threadIdx.x == 0) tell(flag);
}
__global__ void k(int* mid, int* flag) {
    if (blockIdx.x == 0) {
        mid[threadIdx.x] = threadIdx.x * 2;
        post(flag);
    } else if (blockIdx.x == 1) {
        if (threadIdx.x == 0)
            while (atomicAdd(flag, 0) == 0) {}
        __threadfence();
        __syncthreads();
        mid[64 + threadIdx.x] = mid[63 - threadIdx.x];
    }
}
"""
MAIL = """\
__global__ void k(int* out, int* flag) {
    int* slot = flag + 1;
    if (threadIdx.x) return;
    for (int i = 0; i < 4; ++i)
        if (blockIdx.x == 0) {
            while (atomicAdd(flag, 0) != 0) {}
            __threadfence();  // lost
            slot[0] = i;
            __threadfence();  // lost
            atomicExch(flag, 1);
        } else if (blockIdx.x == 1) {
            while (atomicAdd(flag, 0) != 1) {}
            __threadfence();  // lost
            out[i] = slot[0];
            __threadfence();  // lost
            atomicExch(flag, 0);
        }
}
"""
BACK = """\
__global__ void k(int* sums, int* flag) {
    int b = blockIdx.x, run = 0, own[] = {7, 8, 9};
    if (threadIdx.x == 0) {
        if (b) {
            sums[b] = own[b];
            __threadfence();  // lost
            atomicExch(&flag[b], 1);
        } else {
            sums[3] = own[0];
            __threadfence();  // lost
            atomicExch(&flag[0], 2);
        }
        for (int p = b - 1; p >= 0;) {
            while (true) {
                int f = atomicAdd(&flag[p], 0);
                if (f == 0) continue;
                __threadfence();  // lost
                if (f == 2) { run += sums[3]; p = -1; break; }
                run += sums[p]; --p; break;
            }
        }
        sums[4 + b] = run;
    }
}
"""
pytestmark = pytest.mark.slow
SOURCES = {"lock": LOCK, "post": POST, "mail": MAIL, "back": BACK}
LOST = [(name, n) for name, text in SOURCES.items() for n in range(text.count("// lost"))]


@pytest.mark.parametrize(("name", "which"), LOST)
def test_a_lost_fence_is_given_back(name: str, which: int, tmp_path: Path) -> None:
    parts = SOURCES[name].split("__threadfence();  // lost")
    wanted = SOURCES[name].count("__threadfence();")
    lost = "__threadfence();".join(parts[: which + 1]) + "__threadfence();".join(parts[which + 1 :])
    file = tmp_path / "k.cu"
    file.write_text(lost)
    words = launch(file, 3, 64, "i32[128]", "i32[4]")
    said = check(*words, "--fix", "--fail-on", "warning")
    assert "__threadfence()" in said.stdout
    again = check(*words, "--fail-on", "warning", "--no-cure")
    assert again.exit_code == 0, said.stdout + again.stdout
    assert file.read_text().count("__threadfence();") == wanted  # one, wherever it stands
