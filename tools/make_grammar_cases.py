#!/usr/bin/env python3
"""Writes tests/golden/grammar/cases.json: JSON texts and whether python jsonschema accepts them.

Needs jsonschema 4. "valid" texts are made from the schema, properties in its order, and dumped in
three styles; "invalid" ones are mutations that the validator refuses.
Usage: tools/make_grammar_cases.py > tests/golden/grammar/cases.json
"""

import copy
import json
import random

import jsonschema

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "mail": {"type": ["string", "null"]},
        "tags": {"type": "array", "items": {"enum": ["a", "b\"c", "\u00e9\n", 1, None]},
                 "minItems": 1, "maxItems": 3},
    },
    "required": ["name", "tags"],
    "additionalProperties": False,
}
TREE = {
    "$defs": {"node": {
        "type": "object",
        "properties": {"value": {"type": "number"},
                       "children": {"type": "array", "items": {"$ref": "#/$defs/node"},
                                    "maxItems": 2},
                       "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
        "required": ["value", "next"], "additionalProperties": False}},
    "$ref": "#/$defs/node",
}
ALL_OF = {
    "$defs": {"base": {"type": "object", "properties": {"id": {"type": "integer", "minimum": 3}},
                       "required": ["id"]}},
    "allOf": [{"$ref": "#/$defs/base"},
              {"properties": {"id": {"maximum": 120}, "kind": {"const": "x"}}}],
    "required": ["kind"],
}
SCHEMAS = [
    PERSON, TREE, ALL_OF, True, {}, {"type": "object"},
    {"type": "array"}, {"type": "string"}, {"type": "boolean"}, {"type": "null"},
    {"type": "integer"}, {"type": "number"},
    {"type": "object", "additionalProperties": {"type": "integer"}},
    {"type": "object", "properties": {"ab": {"type": "null"}, "abc": {"type": "null"}},
     "additionalProperties": {"type": "string"}},
    {"type": "object", "required": ["z"], "properties": {"a": {"type": "integer"}},
     "additionalProperties": {"type": "boolean"}},
    {"type": "object", "properties": {c: {"type": "integer"} for c in "abcde"},
     "required": ["c"], "additionalProperties": False},
    {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}],
     "items": {"type": "null"}, "minItems": 1, "maxItems": 4},
    {"type": "array", "prefixItems": [{"type": "boolean"}] * 3, "items": False, "minItems": 2},
    {"type": "array", "items": {"type": "array", "items": {"type": "integer"}, "maxItems": 2}},
    {"const": {"k": [1, "x", None, {"q": 1.5}]}}, {"enum": []}, {"enum": ["", "a", "ab", "b"]},
    {"anyOf": [{"type": "integer", "minimum": 10}, {"type": "string", "maxLength": 2}]},
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
     "anyOf": [{"required": ["a"]}, {"required": ["b"]}], "additionalProperties": False},
    {"oneOf": [{"type": "integer"}, {"type": "boolean"}]},
    {"type": "string", "pattern": "^[a-c]{2,4}$"}, {"type": "string", "pattern": "b+c"},
    {"type": "string", "pattern": "^(\\d{3}-)?\\w+\\.(com|org)$|^x"},
    {"type": "string", "pattern": "^[^\\n\"]*\"\\\\[\\t ]$"},
    {"type": "string", "format": "date"}, {"type": "string", "format": "ipv4"},
    {"type": "string", "format": "uuid"}, {"type": "string", "format": "ipv6"},
    {"type": "string", "minLength": 3}, {"type": "string", "minLength": 20, "maxLength": 60},
]
for low, high in [(0, 9), (-5, 17), (7, 7), (-120, -13), (99, 10000), (-1, 0), (123, 457),
                  (1000, 1001), (-987654321, 123456789)]:
    SCHEMAS.append({"type": "integer", "minimum": low, "maximum": high})
    SCHEMAS.append({"type": "integer", "exclusiveMinimum": low - 1, "exclusiveMaximum": high + 1})
    SCHEMAS.append({"type": "number", "minimum": low, "exclusiveMaximum": high + 1})
for low, high in [(0.5, 2.25), (-1.5, 0.125), (3.14, 3.15), (-7.05, -7.001), (0, 0.001)]:
    SCHEMAS.append({"type": "number", "minimum": low, "maximum": high})
    SCHEMAS.append({"type": "number", "exclusiveMinimum": low, "exclusiveMaximum": high})
    SCHEMAS.append({"type": "integer", "minimum": low, "maximum": high})
SCHEMAS += [{"type": "number", "minimum": 2.5}, {"type": "number", "exclusiveMaximum": -0.75},
            {"type": "integer", "minimum": -12}, {"type": "integer", "maximum": 34}]

STRINGS = ["", "a", "bc", "abc", "xbbcx", "ccc", "123-ab_c.org", "x\"\\", "x\"\\\t", "\u00e9\u4e16",
           "\U0001f600", "2024-02-28", "2023-02-30", "1.2.3.255", "1.2.3.256", "::1", "1::2:3",
           "12345678-1234-1234-1234-123456789abc", "a\nb", "/", "\u007f", "x" * 25, "y" * 61]
NUMBERS = [0, 1, -1, 3, 7, 9, 10, 17, 18, 100, 119, 123, 456, 999, 1000, 1001, 10001, -13, -14, -121]
FRACTIONS = [0.5, 0.25, 2.25, 2.26, 3.14, 3.145, 3.15, -7.05, -7.0123, -7.001, 0.001, 0.0005,
             -1.5, 0.125, -0.75, -0.76, 12.0625]


def any_value(random, depth=0):
    kind = random.randrange(5 if depth > 2 else 7)
    if kind == 0:
        return random.choice(STRINGS)
    if kind == 1:
        return random.choice(NUMBERS) * random.choice([1, 1, 1, 1000003])
    if kind == 2:
        return random.choice(FRACTIONS)
    if kind == 3:
        return random.choice([True, False])
    if kind == 4:
        return None
    if kind == 5:
        return [any_value(random, depth + 1) for _ in range(random.randrange(4))]
    return {random.choice(STRINGS + ["ab", "abc", "z", "k"]): any_value(random, depth + 1)
            for _ in range(random.randrange(4))}


def close_value(random, schema, root, depth=0):
    """A value that is near the schema: often valid, properties in order."""
    if not isinstance(schema, dict) or random.random() < 0.03:
        return any_value(random, depth)
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].split("/")[-1]]
    if "allOf" in schema:
        return {"id": random.choice(NUMBERS), "kind": random.choice(["x", "x", "y"])}
    if "anyOf" in schema and "properties" not in schema:
        # The last branch ends recursion.
        branch = schema["anyOf"][-1] if depth > 3 else random.choice(schema["anyOf"])
        return close_value(random, branch, root, depth + 1)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return random.choice(schema["enum"])
    kind = schema.get("type", "array" if "prefixItems" in schema else None)
    if isinstance(kind, list):
        kind = random.choice(kind)
    if kind == "object":
        result = {}
        for name, value in schema.get("properties", {}).items():
            if name in schema.get("required", []) or random.random() < 0.5:
                result[name] = close_value(random, value, root, depth + 1)
        for name in schema.get("required", []):
            extra = schema.get("additionalProperties", True)
            result.setdefault(name, close_value(random, extra, root, depth + 1))
        if schema.get("additionalProperties", "properties" not in schema) is not False:
            for _ in range(random.randrange(3)):
                result.setdefault(random.choice(["q", "abcd", "a b", "\u00e9"]), close_value(
                    random, schema.get("additionalProperties", True), root, depth + 1))
        return result
    if kind == "array":
        prefix = schema.get("prefixItems", [])
        n = random.randrange(schema.get("minItems", 0), schema.get("maxItems", 4) + 1)
        if "prefixItems" in schema and schema.get("items") is False:
            n = min(n, len(prefix))
        parts = prefix[:n] + [schema.get("items", True)] * (n - len(prefix))
        return [close_value(random, part, root, depth + 1) for part in parts]
    if kind == "string":
        return random.choice(STRINGS)
    if kind == "boolean":
        return random.choice([True, False])
    if kind == "null":
        return None
    if kind == "integer":
        return random.choice(NUMBERS)
    if kind == "number":
        return random.choice(NUMBERS + FRACTIONS * 2)
    return any_value(random, depth)


def mutated(random, value):
    """The value with one change somewhere."""
    value = copy.deepcopy(value)
    if isinstance(value, dict) and value and random.random() < 0.8:
        name = random.choice(list(value))
        if random.random() < 0.3:
            del value[name]
        else:
            value[name] = mutated(random, value[name])
        return value
    if isinstance(value, list) and value and random.random() < 0.8:
        i = random.randrange(len(value))
        value[i] = mutated(random, value[i])
        return value
    return any_value(random)


def dumps(random, value):
    style = random.choice([{"separators": (",", ":")}, {}, {"indent": 2}])
    return json.dumps(value, ensure_ascii=False, **style)



def cases_of(schema, seed):
    rng = random.Random(seed)
    validator = jsonschema.Draft202012Validator(
        schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
    valid, invalid = set(), set()
    for _ in range(150):
        value = close_value(rng, schema, schema)
        if validator.is_valid(value):
            # A float like 1.0 counts as an integer for the validator only.
            valid.add(dumps(rng, value))
        for other in (value, mutated(rng, value), any_value(rng)):
            if not validator.is_valid(other):
                invalid.add(dumps(rng, other))
    return sorted(valid)[:25], sorted(invalid)[:25]


def main():
    cases = []
    for i, schema in enumerate(SCHEMAS):
        valid, invalid = cases_of(schema, i)
        cases.append({"schema": schema, "valid": valid, "invalid": invalid})
    print(json.dumps({"made_with": "jsonschema 4", "cases": cases}, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
