"""Holds requests and answers to our OpenAPI file: as much of JSON Schema as it uses, strictly."""

import json
import re
from pathlib import Path

import yaml

FILE = Path(__file__).parents[2] / "docs" / "provider-openapi.yaml"
TYPES = {"string": str, "object": dict, "array": list, "integer": int, "boolean": bool}
KNOWN = {
    "$ref", "type", "enum", "required", "properties", "additionalProperties", "items",
    "minLength", "maxLength", "description",
}  # fmt: skip


class OpenApi:
    def __init__(self, text=None):
        self.document = yaml.safe_load(text or FILE.read_text())
        self.used = set()

    def resolve(self, thing):
        while "$ref" in thing:
            found = self.document
            for name in thing["$ref"].removeprefix("#/").split("/"):
                found = found[name]
            thing = found
        return thing

    def mistakes(self, schema, value, where="body"):
        schema = self.resolve(schema)
        assert set(schema) <= KNOWN, f"not understood: {set(schema) - KNOWN}"
        kind = schema.get("type")
        if kind and not isinstance(value, TYPES[kind]):
            return [f"{where} is no {kind}"]
        if "enum" in schema and value not in schema["enum"]:
            return [f"{where} is {value!r}"]
        check = {"string": self._text, "array": self._array, "object": self._object}
        return check[kind](schema, value, where) if kind in check else []

    def _text(self, schema, value, where):
        fits = schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 10_000)
        return [] if fits else [f"{where} has {len(value)} characters"]

    def _array(self, schema, value, where):
        each = (self.mistakes(schema["items"], v, f"{where}[{n}]") for n, v in enumerate(value))
        return [mistake for mistakes in each for mistake in mistakes]

    def _object(self, schema, value, where):
        properties = schema.get("properties", {})
        found = [
            f"{where} lacks {each}" for each in schema.get("required", ()) if each not in value
        ]
        for name, each in value.items():
            if name in properties:
                found += self.mistakes(properties[name], each, f"{where}.{name}")
            elif schema.get("additionalProperties") is False:
                found.append(f"{where} has {name}")
        return found

    def operation(self, method, path):
        for template, item in self.document["paths"].items():
            if re.fullmatch(re.sub(r"{\w+}", r"[^/]+", template), path):
                return template, item[method.lower()]
        raise AssertionError(f"{method} {path} is not described")

    def check(self, request, response):
        """One exchange of httpx, both sides."""
        template, described = self.operation(request.method, request.url.path)
        names = {each["name"] for each in described.get("parameters", ())}
        assert set(request.url.params) <= names, request.url
        if "requestBody" in described:
            schema = described["requestBody"]["content"]["application/json"]["schema"]
            assert self.mistakes(schema, json.loads(request.content)) == []
        answers = described["responses"]
        answer = self.resolve(answers.get(str(response.status_code), answers["default"]))
        schema = answer["content"]["application/json"]["schema"]
        assert self.mistakes(schema, response.json()) == [], response.text
        self.used.add((request.method, template, str(response.status_code)))
