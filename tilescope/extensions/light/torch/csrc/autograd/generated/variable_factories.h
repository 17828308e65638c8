// The light ATen/ATen.h: functions of torch:: that make tensors are those of at::.
#pragma once
