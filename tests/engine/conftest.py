"""One Spark session for all tests that need no cluster."""

import os

import pytest
from spark_cluster import environment
from spark_driver import spark_session


@pytest.fixture(scope="session")
def spark():
    os.environ.update(environment())
    session = spark_session("local[2]")
    yield session
    session.stop()
