"""A scalar reference interpreter of PTX: one thread at a time, Python integers, exact rationals.

It shares the parser with the simulator and nothing else. Semantics are PTX ISA's; where that
leaves something open (NaN payloads, division by zero, bit fields), an H200's as measured.
What PTX leaves to chance or promises approximately raises ``NotModelled``.
"""

from tests.oracles.interpreter.barriers import Deadlock
from tests.oracles.interpreter.definedness import Follow
from tests.oracles.interpreter.machine import Livelock, run
from tests.oracles.interpreter.values import NotModelled

__all__ = ["Deadlock", "Follow", "Livelock", "NotModelled", "run"]
