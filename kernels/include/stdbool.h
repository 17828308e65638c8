// stdbool.h for NVRTC, which has none: C's names for what C++ has as words.
#pragma once
#define _Bool bool
#define __bool_true_false_are_defined 1
