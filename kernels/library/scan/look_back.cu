// Inclusive prefix sums of a whole array in one pass: a decoupled look-back.
//
// A block publishes the sum of its elements as soon as it knows it, and everything up to its end
// once it knows what came before. It learns that from the blocks before it, 32 at a time: it adds
// their sums as far back as the nearest that knows everything before it. Blocks draw their numbers
// in the order in which they start, so that nobody waits for one that cannot start.
//
// A state and its value are one word of 64 bits, so no fence is needed between them. state[0]
// counts the blocks that started, state[1 + i] is block i's word; all are zero at first.
const int WIDTH = 256;
typedef unsigned long long Word;
const Word SUM = 1ull << 32, PREFIX = 2ull << 32;

__device__ int warp_sums(int value, int lane) {  // inclusive, of the lanes up to this one
    for (int offset = 1; offset < 32; offset *= 2) {
        int other = __shfl_up_sync(0xffffffffu, value, offset);
        if (lane >= offset)
            value += other;
    }
    return value;
}

__global__ void look_back(const int* in, int* out, Word* state, int n) {
    __shared__ int warps[WIDTH / 32], number, before;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (threadIdx.x == 0)
        number = atomicAdd(&state[0], 1ull);
    __syncthreads();
    int block = number, i = block * WIDTH + threadIdx.x;
    Word* mine = &state[1 + block];

    int sum = warp_sums(i < n ? in[i] : 0, lane);
    if (lane == 31)
        warps[warp] = sum;
    __syncthreads();
    int total = 0;
    for (int w = 0; w < WIDTH / 32; ++w) {
        if (w < warp)
            sum += warps[w];
        total += warps[w];
    }

    if (warp == 0) {
        if (lane == 0)
            atomicExch(mine, (block ? SUM : PREFIX) | (unsigned)total);
        int prefix = 0;
        bool done = block == 0;
        for (int last = block - 1; !done; last -= 32) {
            Word word;
            do
                word = last >= lane ? atomicAdd(mine - block + last - lane, 0ull) : PREFIX;
            while (__any_sync(0xffffffffu, word < SUM));
            unsigned known = __ballot_sync(0xffffffffu, word >= PREFIX);
            int nearest = known ? __ffs(known) - 1 : 31;
            int part = lane <= nearest ? (int)(unsigned)word : 0;
            for (int offset = 16; offset > 0; offset /= 2)
                part += __shfl_xor_sync(0xffffffffu, part, offset);
            prefix += part;
            done = known;
        }
        if (lane == 0) {
            if (block)
                atomicExch(mine, PREFIX | (unsigned)(prefix + total));
            before = prefix;
        }
    }
    __syncthreads();
    if (i < n)
        out[i] = before + sum;
}
