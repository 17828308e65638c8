// Größe: with a byte order mark and the line ends of Windows
#include <windows.h>
#define ADD(a, b) \
    ((a) + \
     (b))
__global__ void add(int* x, int n)
{
    int i = threadIdx.x;
    if (i < n) x[i] = ADD(x[i], 1);
}
int main()
{
    add<<<1, 32>>>(nullptr, 32);
    Sleep(10);
    return 0;
}
