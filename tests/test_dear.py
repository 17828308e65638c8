"""``dear.txt``: a name that no test has any more would move none, in silence."""

import pytest
from dear import LOST


def test_each_name_is_a_test(pytestconfig: pytest.Config) -> None:
    if any("::" in word for word in pytestconfig.args):
        pytest.skip("not all tests of the files were collected")
    assert pytestconfig.stash[LOST] == []
