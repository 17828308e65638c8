// Inclusive prefix sums within blocks of 256 integers: out[i] is the sum of in[first..i],
// where first is the first element of i's block.

const int WIDTH = 256;

// Hillis and Steele: in every round each element adds the one `distance` before it, and the
// distance doubles. Two buffers take turns, so that one barrier a round is enough: nobody
// overwrites what others still read.
__global__ void hillis_steele(const int* in, int* out, int n) {
    __shared__ int sums[2][WIDTH];
    int t = threadIdx.x;
    int i = blockIdx.x * WIDTH + t;
    int now = 0;
    sums[0][t] = i < n ? in[i] : 0;
    __syncthreads();
    for (int distance = 1; distance < WIDTH; distance *= 2) {
        int value = sums[now][t];
        if (t >= distance)
            value += sums[now][t - distance];
        now = 1 - now;
        sums[now][t] = value;
        __syncthreads();  // the round is complete, for all threads
    }
    if (i < n)
        out[i] = sums[now][t];
}

// Blelloch: a tree of sums upwards, then prefixes handed down it; about 2n additions where
// the other takes n log n. 128 threads, two elements each. The result is exclusive (the sum
// before an element); adding the element makes it inclusive.
__global__ void blelloch(const int* in, int* out, int n) {
    __shared__ int tree[WIDTH];
    int t = threadIdx.x;
    int first = blockIdx.x * WIDTH;
    int low = first + t;
    int high = low + WIDTH / 2;
    int low_value = low < n ? in[low] : 0;
    int high_value = high < n ? in[high] : 0;
    tree[t] = low_value;
    tree[t + WIDTH / 2] = high_value;
    for (int step = 1; step < WIDTH; step *= 2) {  // upwards: sums of pairs of pairs
        __syncthreads();
        int right = 2 * step * (t + 1) - 1;
        if (right < WIDTH)
            tree[right] += tree[right - step];
    }
    if (t == 0)
        tree[WIDTH - 1] = 0;  // its own sum of all: nothing stands before the whole
    for (int step = WIDTH / 2; step > 0; step /= 2) {  // downwards: what is before each half
        __syncthreads();
        int right = 2 * step * (t + 1) - 1;
        if (right < WIDTH) {
            int left_sum = tree[right - step];
            tree[right - step] = tree[right];
            tree[right] += left_sum;
        }
    }
    __syncthreads();
    if (low < n)
        out[low] = tree[t] + low_value;
    if (high < n)
        out[high] = tree[t + WIDTH / 2] + high_value;
}
