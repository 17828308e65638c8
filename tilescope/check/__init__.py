"""Findings, fixes and verdicts; the module itself can be called: ``tilescope.check(kernel, ...)``.

``tilescope.check`` names both this package and the call of ``check_call.py``. Whichever is
imported first, the attribute is this module.
"""

import sys
import types
from typing import Any


class _CallableModule(types.ModuleType):
    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Check a launch: see ``check_call.check``."""
        from .check_call import check

        return check(*args, **keywords)


sys.modules[__name__].__class__ = _CallableModule
