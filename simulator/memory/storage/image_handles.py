"""Handles of textures and surfaces."""

from kernels.arguments.texture import Surface, Texture
from kernels.errors import LaunchError

from .spaces import Allocation

HANDLES = 0x7E << 52
"""Handles begin here: an array's number and which of its objects follow."""
Picture = Texture | Surface
MAX_IMAGES = 256


def handle(array: Allocation, of: Picture) -> bytes:
    """Return an object's handle; an array has at most ``MAX_IMAGES`` objects.

    Raises:
        LaunchError: There are more.
    """
    if of not in array.pictures:
        array.pictures.append(of)
    which = array.pictures.index(of)
    return picture_handle(array.number, which, array.name).to_bytes(8, "little")


def picture_handle(number: int, which: int, name: str) -> int:
    """Return the handle of an object by its array's number and its place among the array's.

    Raises:
        LaunchError: An array has at most ``MAX_IMAGES`` of them.
    """
    if which >= MAX_IMAGES:
        raise LaunchError(f"{name} has more than {MAX_IMAGES} textures and surfaces")
    return HANDLES | number << 8 | which
