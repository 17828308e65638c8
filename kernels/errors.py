"""Errors that the user can correct."""


class KernelError(Exception):
    """A kernel cannot be loaded: its file, entry or PTX is wrong."""


class CompileError(KernelError):
    """NVRTC rejected the source; the message is its log, with the user's lines."""


class SimulatorError(Exception):
    """A launch that cannot be simulated."""


class PtxError(SimulatorError):
    """PTX that cannot be parsed, or that uses an unsupported instruction."""


class ArgumentWarning(UserWarning):
    """A likely mistake in an argument, such as a dtype that differs from the source's type."""


class LaunchError(SimulatorError, ValueError):
    """A launch that every GPU would reject: shape, shared memory or arguments."""
