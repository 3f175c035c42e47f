"""The process whose children live and die, started once for each file of tests."""

import pytest
from publisher_lives import lives_of_a_process


@pytest.fixture(scope="module")
def lives():
    with lives_of_a_process() as live:
        yield live
