"""The public API as text: every public name of the modules that users import, with its signature.

`python -m tests.project.public_api` (or `make api`) writes public_api.txt anew.
"""

from __future__ import annotations

import enum
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

WRITTEN: Final = Path(__file__).with_suffix(".txt")
MODULES: Final = (
    "ropewalk",
    "ropewalk.policies",
    "ropewalk.logging",
    "ropewalk.testing",
    "ropewalk.testing.contract",
    "ropewalk.integrations.otel",
)


def as_text() -> str:
    return "".join(f"{line}\n" for module in MODULES for line in _module(module))


def _module(name: str) -> Iterator[str]:
    module = importlib.import_module(name)
    yield f"# {name}"
    for public in sorted(getattr(module, "__all__", [each for each in vars(module) if _is_own(module, each)])):
        if public in {"default", "sqlite3"}:  # an instance made on first access, and a module of another project
            yield public
        else:
            yield from _named(public, getattr(module, public))
    yield ""


def _is_own(module: Any, name: str) -> bool:
    value = vars(module)[name]
    return not name.startswith("_") and getattr(value, "__module__", None) == module.__name__


def _named(name: str, value: Any) -> Iterator[str]:
    if not inspect.isclass(value):
        yield f"{name}{_signature(value)}" if callable(value) else f"{name}: {type(value).__name__}"
        return
    bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
    yield f"class {name}({bases}){_signature(value)}"
    if issubclass(value, enum.Enum):
        for constant in value:
            yield f"    {constant.name} = {constant.value!r}"
        return
    for member in sorted(_members(value)):
        found = inspect.getattr_static(value, member)
        if isinstance(found, property):
            yield f"    {member}: {_annotation(found.fget)}"
        elif isinstance(found, (staticmethod, classmethod)):
            yield f"    {type(found).__name__} {member}{_signature(found.__func__)}"
        elif inspect.isfunction(found):
            yield f"    {'async ' if inspect.iscoroutinefunction(found) else ''}{member}{_signature(found)}"
        else:
            yield f"    {member}"


def _members(kind: type) -> set[str]:
    """Those that this project defines, wherever in the family; fields of Structs included."""
    own = [each for each in kind.__mro__ if each.__module__.startswith("ropewalk")]
    names = {name for each in own for name in (*vars(each), *vars(each).get("__annotations__", ()))}
    return {name for name in names if not name.startswith("_")} | (
        {"__aenter__"} & {name for each in own for name in vars(each)}
    )


def _signature(value: Any) -> str:
    if isinstance(value, type) and (issubclass(value, enum.Enum) or getattr(value, "_is_protocol", False)):
        return ""  # made by Python itself, by each version in its own way
    if isinstance(value, type) and issubclass(value, msgspec.Struct):
        return f"({', '.join(_field(value, name) for name in value.__struct_fields__)})"
    try:
        return str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""


def _field(struct: type[msgspec.Struct], name: str) -> str:
    """A field of a Struct as a parameter. `inspect` would evaluate its annotation, which type checkers alone can."""
    types = {
        name: hint for each in reversed(struct.__mro__) for name, hint in vars(each).get("__annotations__", {}).items()
    }
    index = struct.__struct_fields__.index(name) - (len(struct.__struct_fields__) - len(struct.__struct_defaults__))
    optional = index >= 0 and struct.__struct_defaults__[index] is not msgspec.NODEFAULT
    return f"{name}: {types[name]}{' = ...' if optional else ''}"


def _annotation(getter: Any) -> str:
    return str(getattr(getter, "__annotations__", {}).get("return", "Any"))


if __name__ == "__main__":
    WRITTEN.write_text(as_text(), encoding="utf-8")
