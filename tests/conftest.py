"""Settings every test shares."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A busy machine makes a slow example, not a wrong one: time is bounded per test (pytest-timeout), not per example.
settings.register_profile("ropewalk", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("ropewalk")

pytest_plugins = ["tests.servers.fixtures", "tests.backends.postgres.backend"]
