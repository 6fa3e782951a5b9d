"""Whole graphs: an independent evaluator says what must become of them, and the stores are held to it."""

import pytest

pytest.register_assert_rewrite("tests.workflow.checking", "tests.workflow.driver")
