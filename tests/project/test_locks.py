"""The locks and pyproject.toml say the same."""

from __future__ import annotations

import re
import tomllib
from itertools import chain
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.project.tree import ROOT

PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
CORE: list[str] = PYPROJECT["project"]["dependencies"]
EXTRAS: dict[str, list[str]] = PYPROJECT["project"]["optional-dependencies"]
GROUPS: dict[str, list[str]] = PYPROJECT["dependency-groups"]

ASKED_FOR: dict[str, list[str]] = {
    "bootstrap": GROUPS["bootstrap"],
    "runtime": [*CORE, *EXTRAS["cli"], *EXTRAS["sqlite"]],
    "dev": [*CORE, *chain.from_iterable(EXTRAS.values()), *GROUPS["dev"]],
}
ENTRY = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>\S+)(?P<rest>.*(?:\n[ ]+.*)*)", re.MULTILINE)


def entries(lock: str) -> list[re.Match[str]]:
    return list(ENTRY.finditer((ROOT / "requirements" / f"{lock}.txt").read_text()))


def pins(lock: str) -> dict[str, str]:
    return {entry["name"]: entry["version"] for entry in entries(lock)}


def asked_for(lock: str) -> list[Requirement]:
    """What pyproject.toml names for this lock; an extra that only gathers other extras names nothing new."""
    requirements = [Requirement(text) for text in ASKED_FOR[lock]]
    return [each for each in requirements if each.name != PYPROJECT["project"]["name"]]


@pytest.mark.parametrize("lock", ASKED_FOR)
def test_every_dependency_is_locked_to_a_version_it_allows(lock: str) -> None:
    locked = pins(lock)
    for requirement in asked_for(lock):
        assert requirement.specifier.contains(locked[canonicalize_name(requirement.name)]), requirement


@pytest.mark.parametrize("lock", ASKED_FOR)
def test_nothing_is_locked_that_was_asked_for_once(lock: str) -> None:
    direct = {entry["name"] for entry in entries(lock) if "ropewalk (pyproject.toml" in entry["rest"]}
    assert direct == {canonicalize_name(requirement.name) for requirement in asked_for(lock)}


@pytest.mark.parametrize("lock", ASKED_FOR)
def test_every_version_is_locked_by_hash(lock: str) -> None:
    assert entries(lock)
    assert [entry["name"] for entry in entries(lock) if "--hash=sha256:" not in entry["rest"]] == []


def test_a_package_has_one_version_in_all_locks() -> None:
    versions = {(name, version) for lock in ASKED_FOR for name, version in pins(lock).items()}
    assert len(versions) == len({name for name, _ in versions})


def test_the_build_backend_is_what_set_up_installs() -> None:
    assert set(PYPROJECT["build-system"]["requires"]) <= set(GROUPS["bootstrap"])


def test_the_extra_named_all_is_all() -> None:
    [gathered] = [Requirement(text) for text in EXTRAS["all"]]
    assert gathered.extras == set(EXTRAS) - {"all"}
