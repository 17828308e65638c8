// Types of cuBLAS for PyTorch's headers, where the library's own header is not installed.
#pragma once
typedef struct cublasContext *cublasHandle_t;
typedef enum { CUBLAS_STATUS_SUCCESS = 0 } cublasStatus_t;
