"""Answers as tables (meta.k8s.io/v1 Table), for people with kubectl."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic_core import from_json, to_json

from simulator.apiserver.call import Call
from simulator.apiserver.columns import Column, columns

_READS = ("get", "list")


def asked_for(headers: Mapping[str, str], call: Call) -> bool:
    """Whether the caller would rather have a table than objects."""
    return call.verb in _READS and "as=Table" in headers.get("Accept", "")


def table(call: Call, answer: bytes, now: datetime) -> bytes:
    """An answer (an object or a list) as a table."""
    body = from_json(answer)
    shown = columns(call.kind.plural, call.kind.group)
    objects = body["items"] if call.verb == "list" else [body]
    meta = body["metadata"] if call.verb == "list" else {}
    return to_json(
        {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": meta,
            "columnDefinitions": [_definition(column) for column in shown],
            "rows": [_row(shown, obj, now) for obj in objects],
        }
    )


def _definition(column: Column) -> dict[str, Any]:
    return {
        "name": column.title,
        "type": "string",
        "format": "name" if column.title == "Name" else "",
        "description": column.title,
        "priority": column.priority,
    }


def _row(shown: tuple[Column, ...], obj: dict[str, Any], now: datetime) -> dict[str, Any]:
    head = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    return {
        "cells": [column.cell(obj, now) for column in shown],
        "object": {**head, "metadata": obj["metadata"]},
    }
