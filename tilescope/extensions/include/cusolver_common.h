// Types of cuSOLVER for PyTorch's headers, where the library's own header is not installed.
#pragma once
typedef enum { CUSOLVER_STATUS_SUCCESS = 0 } cusolverStatus_t;
