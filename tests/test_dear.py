"""``dear.txt``: a name that no test has any more would move none, in silence."""

import tempfile
from pathlib import Path

import pytest
from dear import LOST


def test_each_name_is_a_test(pytestconfig: pytest.Config) -> None:
    if any("::" in word for word in pytestconfig.args):
        pytest.skip("not all tests of the files were collected")
    assert pytestconfig.stash[LOST] == []


def test_no_name_is_of_this_machine(request: pytest.FixtureRequest) -> None:
    """A name that holds a path, or an object's address, is another one on the next machine."""
    places = {str(Path(__file__).parents[1]), str(Path.home()) + "/", tempfile.gettempdir() + "/"}
    names = [item.nodeid for item in request.session.items]
    assert [name for name in names if " at 0x" in name or any(at in name for at in places)] == []
