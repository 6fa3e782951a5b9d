"""Every engine test runs on every store; jobs are defined at module level, apps are made here and closed again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from ropewalk import App

MakeApp = Callable[..., App]


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/jobs.db"


@pytest.fixture
async def make_app(url: str) -> AsyncIterator[MakeApp]:
    apps: list[App] = []

    def make(*jobs: Any, **options: Any) -> App:
        app = App(url, jobs=jobs, **options)
        apps.append(app)
        return app

    yield make
    for app in apps:
        await app.close()
