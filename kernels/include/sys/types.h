// sys/types.h for NVRTC, which has none: only what device code uses.
#pragma once
#include <stdint.h>
typedef unsigned char u_char;
typedef unsigned short u_short;
typedef unsigned int u_int;
typedef unsigned long u_long;
typedef uint8_t u_int8_t;
typedef uint16_t u_int16_t;
typedef uint32_t u_int32_t;
typedef uint64_t u_int64_t;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
