"""All stand-ins: importing this module fills the table of calls."""

from . import (
    device_calls,
    driver_calls,
    error_calls,
    function_calls,
    launches,
    registration,
    stream_calls,
)
from .graphs import capture_calls, exec_calls, node_calls
from .memory import allocation_calls, array_calls, copy_calls, picture_calls

MODULES = (
    allocation_calls, array_calls, capture_calls, copy_calls, device_calls, driver_calls,
    error_calls, exec_calls, function_calls, launches, node_calls, picture_calls, registration,
    stream_calls,
)  # fmt: skip
