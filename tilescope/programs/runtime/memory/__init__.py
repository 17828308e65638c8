"""Memory of the runtime API: allocations, copies, arrays, textures."""
