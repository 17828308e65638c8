#ifndef VEC_CUH
#define VEC_CUH
#include <iostream>
#include "scalar.h"

struct vec3 {
    float x, y, z;
    HOST_DEVICE vec3() {}
    HOST_DEVICE vec3(real a, real b, real c) : x(a), y(b), z(c) {}
    HOST_DEVICE vec3 operator+(const vec3& o) const { return vec3(x + o.x, y + o.y, z + o.z); }
};

HOST_DEVICE inline float dot(const vec3& a, const vec3& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

inline std::ostream& operator<<(std::ostream& out, const vec3& v) { return out << v.x; }
inline std::istream& operator>>(std::istream& in, vec3& v) {
    in >> v.x >> v.y >> v.z;
    return in;
}
inline float host_length(const vec3& v) { return std::sqrt(dot(v, v)); }
#endif
