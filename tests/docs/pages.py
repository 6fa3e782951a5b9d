"""Pages of the docs as tests read them: what runs, and which tables must be complete. Runs nothing itself.

For authors, how Markdown becomes something that runs, in a directory of the page's own:

- The ```python blocks of a page are put together, in order, into one script. It must not fail nor write to stderr,
  and where it has `# prints: …` comments it must print exactly that, in that order, `...` standing for anything. An
  `except` must print: an error that does not come would go unnoticed.
- A comment on the line before a block changes that: `<!-- new script -->` starts another script,
  `<!-- file: shop.py -->` writes the block to that file (names are unique over all pages).
- A ```console block runs its `$ ` lines once the script above it has ended; what is below one is what it prints,
  `...` standing for anything. Python below it is another script.
- A ```sh block is not run, but its `ropewalk …` lines must be commands that exist, with options that exist.
- `<!-- every: Bounds -->` before a table: its first column names every member, and nothing else (see members.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GUIDE = DOCS / "guide"

_COMMENT = re.compile(r"<!-- (new script|file|every)(?:: (\S+))? -->")
_PRINTS = re.compile(r"# prints: (.*)")
_CODE_SPAN = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Block:
    language: str
    comment: tuple[str, str] | None
    line: int
    """of its first line of code, from 1"""
    lines: list[str]

    @property
    def code(self) -> str:
        return "\n".join(self.lines) + "\n"


@dataclass
class Script:
    """Its lines have the numbers they have on the page: a traceback leads to the right place."""

    name: str
    lines: list[str] = field(default_factory=list[str])

    def add(self, block: Block) -> None:
        self.lines.extend([""] * (block.line - 1 - len(self.lines)))
        self.lines.extend(block.lines)

    @property
    def code(self) -> str:
        return "\n".join(self.lines) + "\n"

    @property
    def prints(self) -> list[str]:
        return _PRINTS.findall(self.code)


@dataclass(frozen=True)
class File:
    name: str
    code: str


@dataclass(frozen=True)
class Command:
    line: str
    prints: list[str]


Step = Script | File | Command


@dataclass(frozen=True)
class Page:
    path: Path

    def __str__(self) -> str:
        return str(self.path.relative_to(ROOT))

    @property
    def module(self) -> str:
        """What its scripts are called: there is more than one README."""
        return re.sub(r"\W", "_", f"{self.path.parent.name}_{self.path.stem}")

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def blocks(self) -> list[Block]:
        return list(_blocks(self.text.splitlines()))

    @cached_property
    def steps(self) -> list[Step]:
        return list(self._steps())

    @cached_property
    def code(self) -> str:
        """Everything that stands in code: blocks and `spans`."""
        prose = re.sub(r"^```.*?^```", "", self.text, flags=re.DOTALL | re.MULTILINE)
        return "\n".join([block.code for block in self.blocks] + _CODE_SPAN.findall(prose))

    @cached_property
    def tables(self) -> dict[str, list[str]]:
        """The first column of every table that says what it is complete in."""
        lines = self.text.splitlines()
        marks = [(number, _COMMENT.fullmatch(line)) for number, line in enumerate(lines)]
        return {
            mark[2]: _first_column(lines[number + 1 :])
            for number, mark in marks
            if mark is not None and mark[1] == "every"
        }

    def _steps(self) -> Iterator[Step]:
        script: Script | None = None
        scripts = 0
        for block in self.blocks:
            match block.language, block.comment:
                case "python", ("file", name):
                    yield File(name, block.code)
                case "python", comment:
                    if script is None or comment is not None:
                        scripts += 1
                        script = Script(f"{self.module}_{scripts}.py")
                        yield script
                    script.add(block)
                case "console", _:
                    script = None
                    yield from _commands(block)
                case _:
                    pass


def pages() -> list[Page]:
    """Everything written for users. Decision records are history and stay as they were."""
    return [Page(ROOT / "README.md"), *(Page(path) for path in sorted([*DOCS.glob("*.md"), *GUIDE.glob("*.md")]))]


def _blocks(lines: list[str]) -> Iterator[Block]:
    numbered = enumerate(lines, 1)
    comment: tuple[str, str] | None = None
    for number, line in numbered:
        if not line.startswith("```"):
            found = _COMMENT.fullmatch(line)
            comment = None if found is None else (found[1], found[2] or "")
            continue
        code: list[str] = []
        for _, inside in numbered:
            if inside.startswith("```"):
                break
            code.append(inside)
        yield Block(line.removeprefix("```").strip(), comment, number + 1, code)
        comment = None


def _commands(block: Block) -> Iterator[Command]:
    asked: str | None = None
    told: list[str] = []
    for line in [*block.lines, "$ "]:
        if not line.startswith("$ "):
            told.append(line)
            continue
        if asked is not None:
            yield Command(asked, told)
        asked, told = line.removeprefix("$ "), []


def _first_column(lines: list[str]) -> list[str]:
    """Names in the first cells of the table that begins here, without the header."""
    names: list[str] = []
    for line in lines[2:]:
        if not line.startswith("|"):
            break
        names.extend(_CODE_SPAN.findall(line.split("|")[1]))
    return names
