"""The runtime's functions for memory accesses: one for each kind of site."""

from __future__ import annotations

from ..memory.site import Site

ACCESSES = ("load", "store", "atomic")
SPACES = ("global", "shared", "local")
_SPACE_OF = {"global": "global", "const": "global", "param": "global", "shared": "shared",
             "local": "local", "generic": "generic"}  # fmt: skip
_PARAMETERS = "i64 %x, i64 %site, i64 %mask, i64 %addresses, i64 %values, i64 %results"
_TYPES = ", ".join(["i64"] * 6)


def access_name(site: Site) -> str:
    """Return the name of the function that does a site's access."""
    return f"{site.access}_{_SPACE_OF[site.space]}_{site.nbytes}_{site.count}"


def callees(name: str) -> list[str]:
    """Return the functions that one for generic addresses calls; none for others."""
    access, space, rest = name.split("_", 2)
    spaces = [s for s in SPACES if (access, s) != ("atomic", "local")]
    return [f"{access}_{s}_{rest}" for s in spaces] if space == "generic" else []


def access_text(name: str) -> str:
    """Return the definition of such a function, in terms of the general ones."""
    access, space, nbytes, count = name.split("_")
    if space == "generic":
        return _generic_text(name)
    place = f"i64 {ACCESSES.index(access)}, i64 {SPACES.index(space)}"
    return (
        f"define i64 @{name}({_PARAMETERS}) nounwind {{\n"
        f"  %result = call i64 @access({_PARAMETERS}, {place}, i64 {nbytes}, i64 {count})\n"
        "  ret i64 %result\n}\n"
    )


def _generic_text(name: str) -> str:
    others = callees(name)
    lines = [f"declare i64 @{other}({_TYPES})" for other in others]
    cases = " ".join(f"i64 {i}, label %space{i}" for i in range(len(others)))
    lines += [
        f"define i64 @{name}({_PARAMETERS}) nounwind {{",
        "  %space = call i64 @plain_addresses(i64 %x, i64 %site, i64 %mask, i64 %addresses)",
        f"  switch i64 %space, label %bail [{cases}]",
    ]
    for i, other in enumerate(others):
        lines += [f"space{i}:", f"  %r{i} = call i64 @{other}({_PARAMETERS})", f"  ret i64 %r{i}"]
    lines += ["bail:", "  ret i64 1", "}\n"]
    return "\n".join(lines)
