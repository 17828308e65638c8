"""Version of tilescope."""

from importlib import metadata


def version() -> str:
    """Return the installed version; ``0`` when running from sources."""
    try:
        return metadata.version("tilescope")
    except metadata.PackageNotFoundError:
        return "0"
