// stdlib.h for NVRTC, which has none: only what device code uses.
#pragma once
#include <stddef.h>
