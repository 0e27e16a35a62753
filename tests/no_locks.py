"""A kernel without locks of files, as NFS mounted without them has it: a filter of system calls, on Linux."""

import ctypes
import platform
import struct

_CALLS = {"x86_64": (0xC000003E, 72, 73), "aarch64": (0xC00000B7, 25, 32)}
"""The architecture's number, and those of fcntl and flock."""

SUPPORTED = platform.system() == "Linux" and platform.machine() in _CALLS

_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _SECOND_ARGUMENT = 0, 4, 24
_SETLK, _SETLKW, _OFD_SETLK = 6, 7, 37


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def refuse_locks(error: int) -> None:
    """Let every lock that this process wants fail with an error's number, for the rest of its life."""
    architecture, fcntl, flock = _CALLS[platform.machine()]
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JUMP_IF_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _NUMBER),
        (_JUMP_IF_EQUAL, 6, 0, flock),
        (_JUMP_IF_EQUAL, 0, 4, fcntl),
        (_LOAD, 0, 0, _SECOND_ARGUMENT),
        (_JUMP_IF_EQUAL, 3, 0, _SETLK),
        (_JUMP_IF_EQUAL, 2, 0, _SETLKW),
        (_JUMP_IF_EQUAL, 1, 0, _OFD_SETLK),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _FAIL | error),
    ]
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    buffer = ctypes.create_string_buffer(code)
    program = _Program(len(steps), ctypes.cast(buffer, ctypes.c_void_p).value)
    library = ctypes.CDLL(None, use_errno=True)
    # PR_SET_NO_NEW_PRIVS, then PR_SET_SECCOMP with a filter.
    if library.prctl(38, 1, 0, 0, 0) or library.prctl(22, 2, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "the kernel takes no filter of system calls")
