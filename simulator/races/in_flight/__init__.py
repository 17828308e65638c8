"""Operations in flight: asynchronous and bulk copies, ``wgmma`` operands, proxy fences."""
