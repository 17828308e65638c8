// Left out by the light ATen/ATen.h.
#pragma once
