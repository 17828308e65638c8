// Bitonic sort of blocks of 256 keys in shared memory, by 128 threads.
//
// Runs of doubling length are sorted, every other one downward, so that two neighbours together
// rise and fall: such a run is sorted by comparing keys half its length apart, a quarter, and so
// on. Which keys are compared does not depend on the keys.
const int KEYS = 256;

__global__ void bitonic(const int* in, int* out, int n) {
    __shared__ int keys[KEYS];
    int first = blockIdx.x * KEYS;
    for (int i = threadIdx.x; i < KEYS; i += KEYS / 2)
        keys[i] = first + i < n ? in[first + i] : 0x7fffffff;  // sorted behind all others
#pragma unroll 1  // 36 rounds, each of them with a barrier
    for (int length = 2; length <= KEYS; length *= 2)
#pragma unroll 1
        for (int apart = length / 2; apart > 0; apart /= 2) {
            __syncthreads();
            int low = threadIdx.x / apart * 2 * apart + threadIdx.x % apart;
            int a = keys[low], b = keys[low + apart];
            bool falling = low & length;
            if ((a > b) != falling) {
                keys[low] = b;
                keys[low + apart] = a;
            }
        }
    __syncthreads();
    for (int i = threadIdx.x; i < KEYS && first + i < n; i += KEYS / 2)
        out[first + i] = keys[i];
}
