"""Which release of tilescope this is."""

from importlib import metadata


def version() -> str:
    """The installed version; 0 where this runs from its sources."""
    try:
        return metadata.version("tilescope")
    except metadata.PackageNotFoundError:
        return "0"
