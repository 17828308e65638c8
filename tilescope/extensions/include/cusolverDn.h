// Types of cuSOLVER for PyTorch's headers, where the library's own header is not installed.
#pragma once
#include <cusolver_common.h>
typedef struct cusolverDnContext *cusolverDnHandle_t;
