"""The engines the query tests run on, started once a worker."""

from collections.abc import Iterator
from typing import Any

import ibis
import pytest
import services


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    with services.postgres() as arguments:
        connection = ibis.postgres.connect(**arguments)
        yield connection
        connection.disconnect()


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    with services.spark() as session:
        yield ibis.pyspark.connect(session)
