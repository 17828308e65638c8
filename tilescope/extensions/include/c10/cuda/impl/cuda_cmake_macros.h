// For PyTorch's wheels for the CPU, which have c10/cuda without this header of its build.
#pragma once
#define C10_CUDA_BUILD_SHARED_LIBS
