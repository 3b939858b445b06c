"""What is wrong with a value by a JSON schema, as far as the schemas in docs/ use it."""

import re

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
KNOWN = {"$schema", "$id", "title", "description", "type", "required", "properties", "additionalProperties", "items", "enum", "const", "pattern", "minimum"}


def is_of(value, kind):
    if kind in ("number", "integer"):
        return not isinstance(value, bool) and isinstance(value, int if kind == "integer" else (int, float))
    return isinstance(value, TYPES[kind])


def errors(value, schema, where="$"):
    unknown = set(schema) - KNOWN
    if unknown:
        raise AssertionError(f"{where}: {unknown} is not checked")
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    found = []
    if kinds and not any(is_of(value, kind) for kind in kinds):
        return [f"{where}: {value!r} is none of {kinds}"]
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where}: {value!r} is none of {schema['enum']}")
    if "const" in schema and value != schema["const"]:
        found.append(f"{where}: {value!r} is not {schema['const']!r}")
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        found.append(f"{where}: {value!r} is no {schema['pattern']}")
    if is_of(value, "number") and value < schema.get("minimum", value):
        found.append(f"{where}: {value} is too small")
    if isinstance(value, dict):
        found += [f"{where}: no {name}" for name in schema.get("required", []) if name not in value]
        for name, each in value.items():
            if name in schema.get("properties", {}):
                found += errors(each, schema["properties"][name], f"{where}.{name}")
            elif schema.get("additionalProperties") is False:
                found.append(f"{where}: {name} is not in the schema")
    if isinstance(value, list) and "items" in schema:
        for i, each in enumerate(value):
            found += errors(each, schema["items"], f"{where}[{i}]")
    return found
