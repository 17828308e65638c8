"""Errors that a user can act on."""

from __future__ import annotations


class KernelError(Exception):
    """A kernel that cannot be had: its file, entry or PTX is wrong."""


class CompileError(KernelError):
    """NVRTC refused the source; the message is its log, with the user's lines."""
