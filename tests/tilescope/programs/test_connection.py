"""Frames of a program, answered in a row; the other end is a socket of the test."""

import os
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from tilescope.programs.connection import Connection, Disconnected, RuntimeCall


@pytest.fixture
def ends() -> Iterator[tuple[Connection, socket.socket]]:
    ours, theirs = socket.socketpair()
    theirs.sendall(struct.pack("<Q", os.getpid()))
    connection = Connection(ours)
    connection.answer = answer
    yield connection, theirs
    connection.close()
    theirs.close()


def answer(call: RuntimeCall) -> int:
    return call.registers[0] + call.index


def frame(first: int) -> bytes:
    return struct.pack("<20Q", first, *[0] * 15, 1000, 7, 0, 0)


def answers(theirs: socket.socket, count: int) -> list[int]:
    found = b""
    while len(found) < 40 * count:
        found += theirs.recv(40 * count)
    return [struct.unpack_from("<5Q", found, 40 * i)[1] for i in range(count)]


@pytest.mark.parametrize(("is_alone", "answered"), [(True, 3), (False, 1)])
def test_calls_that_follow_are_answered_where_nobody_else_waits(
    ends: tuple[Connection, socket.socket], is_alone: bool, answered: int
) -> None:
    connection, theirs = ends
    theirs.sendall(frame(1) + frame(2) + frame(3)[:100])
    rest = threading.Timer(0.05, theirs.sendall, [frame(3)[100:]])  # later than the patience
    rest.start()
    connection.serve(is_alone)
    rest.join()
    assert answers(theirs, answered) == [1001, 1002, 1003][:answered]


def test_a_process_that_calls_without_end_lets_others_be_found(
    ends: tuple[Connection, socket.socket],
) -> None:
    connection, theirs = ends
    theirs.sendall(b"".join(map(frame, range(600))))
    connection.serve(is_alone=True)
    assert answers(theirs, 257)[-1] == 1256
    theirs.setblocking(False)
    with pytest.raises(BlockingIOError):
        theirs.recv(1)


def test_a_closed_end_is_a_disconnection(ends: tuple[Connection, socket.socket]) -> None:
    connection, theirs = ends
    theirs.sendall(frame(1))
    theirs.shutdown(socket.SHUT_WR)
    with pytest.raises(Disconnected):
        connection.serve(is_alone=True)
    assert answers(theirs, 1) == [1001]
