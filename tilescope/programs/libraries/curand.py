"""cuRAND's host API (cuRAND Library Programming Guide, "Host API Overview")."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..runtime.calls import UnsupportedCallError
from .calls import CallFailedError, Compute, Library, LibraryCall, setting
from .handle_calls import destroyer, hint, option_setter, version
from .numbers import F32, F64, NumberType
from .random_numbers import MRG32K3A, PHILOX, XORWOW, RandomNumbers

NOT_INITIALIZED, TYPE_ERROR, LENGTH_NOT_MULTIPLE, LAUNCH_FAILURE = 101, 103, 105, 201
"""Of ``curandStatus_t``."""
LIBRARY = Library("cuRAND", LAUNCH_FAILURE)
VERSION = 10400
_DEFAULT = 100
"""``CURAND_RNG_PSEUDO_DEFAULT``."""
_SEEDED, _DYNAMIC = 102, 104
"""Orderings that are not documented."""
_U32 = NumberType(np.uint32, np.uint32)


class RandomGenerator:
    """A ``curandGenerator_t``; ``on_host``: it stores its results in the host's memory."""

    def __init__(self, kind: int, on_host: bool) -> None:
        self.numbers = RandomNumbers(kind)
        self.stream, self.on_host = 0, on_host


def _generator(call: LibraryCall) -> RandomGenerator:
    found = call.runtime.libraries.handles.get(call["generator"])
    if not isinstance(found, RandomGenerator):
        raise CallFailedError(NOT_INITIALIZED)
    return found


def _create(on_host: bool) -> Compute:
    @setting
    def compute(call: LibraryCall) -> None:
        kind = XORWOW if call["kind"] == _DEFAULT else call["kind"]
        if kind not in (XORWOW, MRG32K3A, PHILOX):
            raise UnsupportedCallError(f"{call.name} of curandRngType {kind} has no stand-in")
        call.put("generator", call.runtime.libraries.add(RandomGenerator(kind, on_host)))

    return compute


def _restart(name: str) -> Compute:
    @setting
    def compute(call: LibraryCall) -> None:
        value = call["value"] & (1 << 64) - 1
        if name == "ordering" and value in (_SEEDED, _DYNAMIC):
            raise UnsupportedCallError(f"{call.name} to curandOrdering {value} has no stand-in")
        _generator(call).numbers.restart(**{name: value})

    return compute


def _generate(
    distribution: str, of: NumberType, then: Callable[[LibraryCall, Any], Any]
) -> Compute:  # fmt: skip
    def compute(call: LibraryCall) -> int | None:
        generator, count = _generator(call), call["n"]
        pairs = distribution.startswith("normal") and generator.numbers.kind != PHILOX
        if pairs and count % 2:
            return LENGTH_NOT_MULTIPLE
        values = then(call, generator.numbers.draw(distribution, count))
        if generator.on_host:
            call.put_scalars("out", values, of, False)
            return None
        out = call.vector("out", count, 1, of, "store")
        call.store(out, "out", values, of)
        call.done(generator.stream)
        return None

    return compute


def _plain(call: LibraryCall, values: Any) -> Any:
    return values


def _scaled(call: LibraryCall, values: Any) -> Any:
    kind = values.dtype.type
    return values * kind(call["deviation"]) + kind(call["mean"])


def _log_normal(call: LibraryCall, values: Any) -> Any:
    return np.exp(_scaled(call, values))


_MANY = "*generator *out n:q"
ROWS: tuple[tuple[str, str, Compute], ...] = (
    ("CreateGenerator", "*generator kind", _create(False)),
    ("CreateGeneratorHost", "*generator kind", _create(True)),
    ("DestroyGenerator", "*generator", destroyer(_generator, "generator")),
    ("SetPseudoRandomGeneratorSeed", "*generator value:q", _restart("seed")),
    ("SetGeneratorOffset", "*generator value:q", _restart("offset")),
    ("SetGeneratorOrdering", "*generator value", _restart("ordering")),
    ("SetStream", "*generator value:q", option_setter(_generator, "stream")),
    ("GenerateSeeds", "*generator", hint(_generator)),
    ("GetVersion", "*out", version(VERSION)),
    ("Generate", _MANY, _generate("bits", _U32, _plain)),
    ("GenerateUniform", _MANY, _generate("uniform", F32, _plain)),
    ("GenerateUniformDouble", _MANY, _generate("uniform double", F64, _plain)),
    ("GenerateNormal", f"{_MANY} mean:f deviation:f", _generate("normal", F32, _scaled)),
    ("GenerateNormalDouble", f"{_MANY} mean:d deviation:d",
     _generate("normal double", F64, _scaled)),
    ("GenerateLogNormal", f"{_MANY} mean:f deviation:f", _generate("normal", F32, _log_normal)),
    ("GenerateLogNormalDouble", f"{_MANY} mean:d deviation:d",
     _generate("normal double", F64, _log_normal)),
)  # fmt: skip

for _name, _parameters, _compute in ROWS:
    LIBRARY.enter(f"curand{_name}", _parameters, _compute)
