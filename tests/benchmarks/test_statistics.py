"""Statistics: a week of jobs is measured on every store, on tiny numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import statistics


@pytest.mark.parametrize("store", statistics.STORES)
def test_every_range_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], store: str
) -> None:
    monkeypatch.setattr(statistics, "MINUTES", 90)
    out = tmp_path / "figures.json"
    given = ["--jobs", "200", "--only", store, "--directory", str(tmp_path), "--json", str(out)]
    assert statistics.main(given) == 0
    said = json.loads(out.read_text())
    assert said["jobs"] == 200
    assert {name: len(took) for name, took in said["milliseconds"][store].items()} == dict.fromkeys(
        statistics.RANGES, statistics.ASKED
    )
    assert "200 finished" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [out.name]
