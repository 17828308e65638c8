"""Methods whose answers the object keeps."""

import functools
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple, cast


class Keeper:
    """An object that keeps answers; ``known``: by the method, and what it was asked."""

    def __init__(self) -> None:
        self.known: dict[object, object] = {}


_Keeper = TypeVar("_Keeper", bound=Keeper)
_Asked = TypeVarTuple("_Asked")
_Answer = TypeVar("_Answer")


def kept(
    method: Callable[[_Keeper, *_Asked], _Answer],
) -> Callable[[_Keeper, *_Asked], _Answer]:
    """A method whose answers the object keeps: unlike those of a cache, they go with it."""

    @functools.wraps(method)
    def answer(self: _Keeper, *asked: *_Asked) -> _Answer:
        key = method, asked
        if key not in self.known:
            self.known[key] = method(self, *asked)
        return cast(_Answer, self.known[key])

    return answer
