// stddef.h for NVRTC, which has none: only what device code uses.
#pragma once
typedef decltype(sizeof(0)) size_t;
typedef decltype((char*)0 - (char*)0) ptrdiff_t;
#ifndef NULL
#define NULL 0
#endif
#ifndef offsetof
#define offsetof(type, member) __INTADDR__(&((type*)0)->member)
#endif
namespace std {}
