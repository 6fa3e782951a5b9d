"""The OpenAPI document as one HTML page: operations by family, then shapes. It needs no script and no other file."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any, Final, TypeAlias

Schema: TypeAlias = Mapping[str, Any]

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --link: light-dark(#0b57a4, #8ec5ff); }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 0 auto; padding: 1.5rem; }
a { color: var(--link); }
nav ul { columns: 20rem; list-style: none; padding: 0; }
nav li { break-inside: avoid; }
section { border-top: 1px solid var(--line); margin-top: 1.5rem; padding-top: .5rem; }
code, pre { font: .875em/1.45 ui-monospace, monospace; overflow-wrap: anywhere; }
pre { background: var(--soft); padding: .75rem; overflow: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line); }
h3 code { font-size: 1rem; }
.method { display: inline-block; min-width: 4.5rem; font-weight: 700; }
"""
STYLE_HASH: Final = "sha256-" + base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
"""What a Content-Security-Policy names so that the style of the page, and no other one, takes effect."""


def page(document: Mapping[str, Any]) -> str:
    title = f"{document['info']['title']} {document['info']['version']}"
    parts = (
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{escape(title)}: HTTP API</title>",
        f'<meta name=viewport content="width=device-width"><style>{_STYLE}</style></head><body>',
        f"<h1>{escape(title)}: HTTP API</h1>",
        f"<p>{escape(document['info']['description'])} ",
        'The same as <a href="openapi.json">OpenAPI document</a>.</p>',
        *_operations(document["paths"]),
        "<h2 id=shapes>Shapes</h2>",
        *(_shape(name, schema) for name, schema in sorted(document["components"]["schemas"].items())),
        "</body></html>\n",
    )
    return "\n".join(parts)


def _operations(paths: Mapping[str, Any]) -> Iterator[str]:
    """An index, and the operations of each family."""
    families: dict[str, list[tuple[str, str, Mapping[str, Any]]]] = {}
    for path, methods in paths.items():
        for method, operation in methods.items():
            families.setdefault(operation["tags"][0], []).append((method.upper(), path, operation))
    yield "<nav>"
    for family, operations in families.items():
        yield f"<h2>{escape(family)}</h2><ul>"
        for method, path, operation in operations:
            link = f'<a href="#{operation["operationId"]}"><code>{escape(path)}</code></a>'
            yield f"<li><code class=method>{method}</code> {link}</li>"
        yield "</ul>"
    yield "</nav>"
    for operations in families.values():
        for method, path, operation in operations:
            yield "".join(_operation(method, path, operation))


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield f'<section id="{operation["operationId"]}">'
    yield f"<h3><code class=method>{method}</code> <code>{escape(path)}</code></h3>"
    yield f"<p>{escape(operation['summary'])} {escape(operation.get('description', ''))}</p>"
    yield f"<p>{_who(operation)}</p>"
    parameters = [
        (each["name"], each["in"], _type(each["schema"]), _limits(each["schema"])) for each in operation["parameters"]
    ]
    if parameters:
        yield _table(("Parameter", "In", "Type", "Bounds"), parameters)
    if "requestBody" in operation:
        content = operation["requestBody"]["content"]["application/json"]
        optional = "" if operation["requestBody"]["required"] else " It may be left out."
        yield f"<p>The body is {_type(content['schema'])}.{optional}</p>"
        if "example" in content:
            yield f"<pre>{escape(json.dumps(content['example'], indent=2, ensure_ascii=False))}</pre>"
    answers = [
        (status, escape(answer["description"]), ", ".join(_answer(answer)))
        for status, answer in operation["responses"].items()
    ]
    yield _table(("Status", "Meaning", "Answer"), answers)
    yield "</section>"


def _who(operation: Mapping[str, Any]) -> str:
    role = operation.get("x-role")
    if role is None:
        return "Everybody may call this."
    if role == "identified":
        return "Everybody who has an identity may call this."
    tenants = ", of an identity for every tenant" if operation.get("x-every-tenant") else ""
    return f"This needs the role <code>{escape(role)}</code>{tenants}."


def _answer(answer: Mapping[str, Any]) -> Iterator[str]:
    for media_type, content in answer.get("content", {}).items():
        shape = _type(content["schema"])
        yield shape if media_type == "application/json" else f"<code>{escape(media_type)}</code>"


def _shape(name: str, schema: Schema) -> str:
    told = f'<section id="shape-{escape(name)}"><h3>{escape(name)}</h3><p>{escape(schema.get("description", ""))}</p>'
    if "enum" in schema:
        return f"{told}<p>{_words(schema['enum'])}</p></section>"
    required = schema.get("required", ())
    rows = [
        (f"<code>{escape(field)}</code>", "required" if field in required else "", _type(each), _limits(each))
        for field, each in schema.get("properties", {}).items()
    ]
    return told + _table(("Field", "", "Type", "Bounds"), rows) + "</section>"


def _type(schema: Schema) -> str:
    """The type of a value in words, with links to the shapes."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f'<a href="#shape-{escape(name)}">{escape(name)}</a>'
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(map(_type, schema[key])))
    if "enum" in schema:
        return _words(schema["enum"])
    kind = schema.get("type", "any JSON value")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_type(schema['additionalProperties'])}"
    return escape(schema.get("format", "") or str(kind))


def _limits(schema: Schema) -> str:
    """The bounds of a value, as JSON Schema calls them."""
    found = [f"{name} {escape(json.dumps(schema[name]))}" for name in _BOUNDS if name in schema]
    for each in schema.get("anyOf", ()):
        found += [_limits(each)] if _limits(each) else []
    return "; ".join(dict.fromkeys(found))


def _words(values: Iterable[object]) -> str:
    return ", ".join(f"<code>{escape(str(each))}</code>" for each in values)


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(f"<th>{each}</th>" for each in heads)
    body = "".join("<tr>" + "".join(f"<td>{each}</td>" for each in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


_BOUNDS: Final = (
    *("default", "minimum", "maximum", "exclusiveMinimum", "minLength", "maxLength", "minItems", "maxItems"),
    *("maxProperties", "pattern"),
)
