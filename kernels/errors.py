"""Errors that a user can act on."""


class KernelError(Exception):
    """A kernel that cannot be had: its file, entry or PTX is wrong."""


class CompileError(KernelError):
    """NVRTC refused the source; the message is its log, with the user's lines."""


class SimulatorError(Exception):
    """A launch that cannot be simulated."""


class PtxError(SimulatorError):
    """PTX that cannot be parsed, or an instruction that has no row in the table."""


class ArgumentWarning(UserWarning):
    """An argument that is likely a mistake: the wrong dtype for what the source says."""


class LaunchError(SimulatorError, ValueError):
    """A launch that no GPU would accept: its shape, its shared memory, its arguments."""
