"""Requests drawn from the OpenAPI document, over a real socket, with every check that schemathesis has.

What is to be accepted is accepted, what the document forbids is refused, and every answer has a status and a shape that
the document tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from schemathesis import Case
from schemathesis.config import SchemathesisConfig

from tests.budget import BUDGET
from tests.http.drawn import fitting, served, whole_document

IN_VERIFY = BUDGET > 1
EXAMPLES = 30 * BUDGET if IN_VERIFY else 2
CONFIG = SchemathesisConfig.from_dict(
    {
        # The test proves an identity itself; whether a wrong one is refused is a check of its own (ignored_auth).
        # make test sends the same few requests every time, and make verify draws others.
        "generation": {
            "max-examples": EXAMPLES,
            "deterministic": not IN_VERIFY,
            "database": "none",
            "with-security-parameters": False,
        },
        "phases": {"coverage": {"enabled": IN_VERIFY}},
    }
)
SCHEMA = schemathesis.openapi.from_dict(whole_document(), config=CONFIG).exclude(path="/v1/events")
"""A stream of events has no end, which the tests of events wait for in their own ways."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served() as url:
        yield url


@pytest.mark.drawn
@pytest.mark.timeout(120 if not IN_VERIFY else 900)
@SCHEMA.parametrize()
def test_the_server_does_what_the_document_tells(case: Case[Any], url: str) -> None:
    fitting(case)
    case.call_and_validate(base_url=url, headers={"Authorization": "Bearer anna"}, timeout=30)
