"""Version of tilescope."""


def version() -> str:
    """Return the installed version; ``0`` when running from sources."""
    from importlib import metadata  # 10 ms, which --help does not need

    try:
        return metadata.version("tilescope")
    except metadata.PackageNotFoundError:
        return "0"
