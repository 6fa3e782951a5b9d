"""One door: what the documents tell people to run exists, and what exists is told."""

from __future__ import annotations

import os
import re
import tomllib

import pytest

from ropewalk.backends.postgres.opening import VERSION_MIN
from tests.project.tree import ROOT

TARGETS = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
COMMAND = re.compile(r"\bmake ([a-z-]+)")
DECISIONS = ROOT / "docs" / "decisions"


def commands_in(name: str) -> set[str]:
    """Every `make …` in code: fenced blocks and inline."""
    code = re.findall(r"```.*?```|`[^`\n]+`", (ROOT / name).read_text(), re.DOTALL)
    return set(COMMAND.findall("\n".join(code)))


def test_the_first_two_commands_of_the_readme() -> None:
    assert {"demo", "test"} <= commands_in("README.md")


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_documents_name_only_targets_that_exist(name: str) -> None:
    assert commands_in(name) <= TARGETS


def test_every_target_is_in_the_contributors_guide() -> None:
    assert commands_in("CONTRIBUTING.md") == TARGETS - {"help"}


def test_ci_walks_through_the_same_door() -> None:
    [listed] = re.findall(r"^for target in (.+); do$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert set(listed.split()) == {"check", "test", "test-system"} <= TARGETS


def test_the_versions_that_are_claimed_are_those_that_test_versions_runs() -> None:
    script = (ROOT / "tests" / "servers" / "versions" / "run").read_text()
    pythons, servers = (
        re.findall(rf"^ +for version in ({first}.+); do$", script, re.M)[0].split() for first in (3, 14)
    )
    readme = (ROOT / "README.md").read_text()
    [(oldest, newest)] = re.findall(r"on Python (3\.\d+) to (3\.\d+) and on PostgreSQL", readme)
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    classified = re.findall(r"Python :: (3\.\d+)", " ".join(metadata["classifiers"]))
    assert set(classified) <= set(pythons)
    assert (classified[0], classified[-1]) == (oldest, newest)
    assert metadata["requires-python"] == f">={oldest}"
    assert (servers[0], re.findall(r"on PostgreSQL (\d+) to \d+", readme)) == (str(VERSION_MIN), [str(VERSION_MIN)])


@pytest.mark.parametrize("script", [".ci/run", "requirements/install"])
def test_scripts_can_be_run(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)


def test_the_changelog_speaks_of_the_version_in_the_making() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    sections = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert sections[0] in ("Unreleased", version)


def test_every_decision_is_in_the_index_and_the_other_way_round() -> None:
    pages = {page.name for page in DECISIONS.glob("[0-9]*.md")}
    linked = set(re.findall(r"\]\(([0-9][^)]+\.md)\)", (DECISIONS / "README.md").read_text()))
    assert linked == pages
