"""NVIDIA's compilers in a process of their own: what ends them ends only that.

``process.py`` starts this file by its path, so nothing else of tilescope is imported. A
JSON document a line: on stdin ``sys.path``, then what to compile; on stdout what came of each.
"""

import base64
import json
import os
import queue
import signal
import sys
import threading
from typing import Any

_STACK = 1 << 28
"""Bytes of address space for a compiler's stack: deeply nested text is no reason to crash."""


class _Failed(Exception):
    """A compiler says no where the text is not to blame."""


def main() -> None:
    """Serve compile requests until the parent process closes the pipe.

    The parent handles interrupts.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # a compiler that prints is none of the answer
    asked: queue.SimpleQueue[str] = queue.SimpleQueue()
    sys.path[:] = json.loads(sys.stdin.readline() or "[]")

    def work() -> None:
        while True:
            task = json.loads(asked.get())
            try:
                os.chdir(task.pop("folder"))
                answer = {"made": _WORK[task.pop("work")](**task)}
            except _Failed as error:
                answer = {"failed": str(error)}
            except (ImportError, RuntimeError) as error:
                answer = {"missing": str(error)}
            except Exception as error:  # whatever it is, somebody waits for an answer
                answer = {"failed": f"{type(error).__name__}: {error}"}
            answers.write(json.dumps(answer) + "\n")
            answers.flush()

    threading.stack_size(_STACK)
    threading.Thread(target=work, daemon=True).start()
    for line in sys.stdin:
        asked.put(line)
    os._exit(0)  # in the middle of a compilation, too


def _version() -> dict[str, Any]:
    from cuda.bindings import nvrtc

    _, *version = nvrtc.nvrtcVersion()
    _, known = nvrtc.nvrtcGetSupportedArchs()
    return {"version": version, "archs": known}


def _nvrtc(
    source: str, name: str, entry: str | None, options: list[str], headers: dict[str, str],
    binary: bool,
) -> dict[str, Any]:  # fmt: skip
    """Return PTX, the entry's name and the machine code in base 64; or the error log."""
    from cuda.bindings import nvrtc

    def call(function: Any, *args: Any) -> Any:
        status, *values = function(*args)
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise _Failed(f"{function.__name__} failed: {status.name}")
        return values[0] if values else None

    def content(size: Any, read: Any) -> bytes:
        buffer = bytes(call(size, program))
        call(read, program, buffer)  # the binding writes into the object's memory
        return buffer

    def text(size: Any, read: Any) -> str:
        return content(size, read).rstrip(b"\0").decode(errors="replace")

    def encoded(texts: Any) -> list[bytes]:
        return [text.encode("utf-8", "replace") for text in texts]

    program = call(
        nvrtc.nvrtcCreateProgram, *encoded([source, name]), len(headers),
        encoded(headers.values()), encoded(headers),
    )  # fmt: skip
    try:
        expression = entry.encode("utf-8", "replace") if entry else b""
        if expression:
            call(nvrtc.nvrtcAddNameExpression, program, expression)
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), encoded(options))
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            log = text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog).strip()
            return {"log": log, "status": status.name}
        code = content(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN) if binary else b""
        lowered = ""
        if expression:
            lowered = call(nvrtc.nvrtcGetLoweredName, program, expression).decode()
        ptx = text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
        return {"ptx": ptx, "entry": lowered, "binary": base64.b64encode(code).decode()}
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _nvjitlink(ptx: str, options: list[str]) -> str | None:
    """Return the machine code of a PTX text in base 64; ``None`` if it is refused."""
    from cuda.bindings import nvjitlink

    handle = nvjitlink.create(len(options), options)
    try:
        text = ptx.encode("utf-8", "replace")
        nvjitlink.add_data(handle, nvjitlink.InputType.PTX, text, len(text), "kernel")
        nvjitlink.complete(handle)
        binary = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, binary)
        return base64.b64encode(binary).decode()
    except nvjitlink.nvJitLinkError:
        return None
    finally:
        nvjitlink.destroy(handle)


_WORK: dict[str, Any] = {"version": _version, "nvrtc": _nvrtc, "nvjitlink": _nvjitlink}

if __name__ == "__main__":
    main()
