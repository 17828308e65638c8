// Types of cuBLASLt for PyTorch's headers, where the library's own header is not installed.
#pragma once
#include <cublas_v2.h>
typedef struct cublasLtContext *cublasLtHandle_t;
