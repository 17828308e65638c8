// PyTorch's header of this name without the C++ front end (torch::nn, optimisers, data loaders),
// whose parsing takes more than half of a build. What it lacks makes a source fail to compile, which
// is then compiled with PyTorch's own.
#pragma once
#include <torch/types.h>
#ifndef __CUDACC__
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
#endif
