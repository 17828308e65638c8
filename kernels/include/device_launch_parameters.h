// device_launch_parameters.h for NVRTC, which has none: only what device code uses.
#pragma once

