// sys/types.h for NVRTC, which has none: only what device code uses.
#pragma once
typedef unsigned char u_char;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
