"""Which accesses of the same bytes race if nothing orders them.

PTX ISA, "Memory Consistency Model": two conflicting accesses race unless happens-before orders
them, or both are strong, cover the same bytes, and each one's scope includes the other's thread
("Morally Strong Operations", "Overlap"). ``strong_size`` states that rule for two accesses at the
scope of the device, and ``race_kind`` names what a pair lacks. Which pairs of ``scope`` and
``steps`` race depends on their blocks: ``stored_values.out_of_scope`` and ``in_steps``. The filters
(``use``, ``ownership.OwnershipTable``) ask ``strong_size`` alone: they take every other access for
weak, and leave the pair to ``race_kind``.
"""

from __future__ import annotations

from ...memory.site import FREES, Site

FREED = "freed"
"""How an access races with ``free``, which is to come later."""
WRITTEN = "written"
"""The use of one place that two threads may not make."""


def strong_size(site: Site) -> int:
    """Return the size of an access that never races with strong ones of that size, else 0.

    It is strong at the scope of the device. ``volatile`` is strong in PTX, but CUDA C++ promises
    nothing of it. Invariant: accesses with equal sizes other than 0 do not race, except
    with ``free``, and atomics in steps in clusters.
    """
    return site.size if site.strong and not site.has_narrow_scope and not site.volatile else 0


def use(site: Site) -> str:
    """Return the class of an access; two of one class do not race, unless it is ``WRITTEN``."""
    if size := strong_size(site):
        return f"strong {size}"
    return "read" if site.access == "load" else WRITTEN


def race_kind(one: Site, other: Site, clusters: bool = False) -> str:
    """Return how accesses of two instructions to the same bytes race, if nothing orders them.

    ``""``: not at all. ``race``: one of them is weak. ``size``: both are strong, and one
    covers a part of the other. ``scope``: both are strong, and race between blocks, since
    the scope of one is its block. ``volatile``: both are, which is strong to PTX alone.
    ``steps``: in ``clusters``, one of them may be an atomic that is none to other blocks.
    ``freed``: one of them frees what the other one uses.
    """
    if one.access == other.access == "load":
        return ""
    if FREES in (one.operation, other.operation):
        return FREED
    steps = clusters and (one.non_atomic_remotely or other.non_atomic_remotely)
    if strong_size(one) == strong_size(other) > 0:
        return "steps" if steps else ""
    if not (one.strong and other.strong):
        return "race"
    if one.size != other.size:
        return "size"
    if one.volatile and other.volatile:
        return "volatile"
    if steps:
        return "steps"
    return "scope" if one.has_narrow_scope or other.has_narrow_scope else ""
