"""What a job type takes and gives, as JSON Schema."""

from __future__ import annotations

from typing import Any

import msgspec

TEMPLATE = "#/$defs/{name}"


def json_schema(annotation: object) -> dict[str, Any]:
    """A schema that stands alone: what it refers to is under `$defs`."""
    (schema,), parts = msgspec.json.schema_components([annotation], schema_hook=_custom, ref_template=TEMPLATE)
    return {**schema, "$defs": parts} if parts else schema


def _custom(cls: type) -> dict[str, Any]:
    """Registered types decide themselves what they look like; a pydantic model says it."""
    describe = getattr(cls, "model_json_schema", None)
    if describe is None:
        return {"description": "any value"} if cls is object else {"title": cls.__qualname__}
    described: dict[str, Any] = describe()
    return described
