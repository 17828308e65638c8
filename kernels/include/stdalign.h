// stdalign.h for NVRTC, which has none: C's names for what C++ has as words.
#pragma once
