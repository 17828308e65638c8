// Types of cuSPARSE for PyTorch's headers, where the library's own header is not installed.
#pragma once
typedef struct cusparseContext *cusparseHandle_t;
typedef enum { CUSPARSE_STATUS_SUCCESS = 0 } cusparseStatus_t;
