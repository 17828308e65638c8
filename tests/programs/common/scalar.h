#pragma once
#include <random>
#define HOST_DEVICE __host__ __device__
typedef float real;
static std::mt19937 engine(42);
inline double random_double() { return std::uniform_real_distribution<double>()(engine); }
