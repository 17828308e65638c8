"""``cuda.bindings``: the driver API and the runtime API."""
