// PyTorch's header of this name with the operators that a source names (OPERATORS in build.py), of
// some 2,500. What it lacks makes a source fail to compile, which is then compiled with PyTorch's own.
#pragma once
#define AT_PER_OPERATOR_HEADERS
#include <ATen/Context.h>
#include <ATen/Dispatch.h>
#include <ATen/TensorIndexing.h>
#include <ATen/TensorOperators.h>
#include <tilescope_operators.h>
