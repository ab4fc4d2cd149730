"""Bytes in a payload: text in base64 in JSON, but as they are in the hands of botocore."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec
from botocore.exceptions import ParamValidationError


def parameters_from(shape: Any, body: bytes) -> Any:
    """Decode a payload for botocore, with bytes wherever ``shape`` says so.

    What does not fit the shape is left as it is, for botocore to complain about.

    Args:
        shape: of the operation's input, in botocore's model.
        body: the payload as JSON.

    Raises:
        ParamValidationError: a text in the place of bytes is no base64.
    """
    payload = msgspec.json.decode(body)
    # Most conversations are words alone, and need no walk through all of them.
    if any(name in body for name in _names_of_blobs(shape)):
        return _with_blobs(shape, payload, "payload")
    return payload


def _with_blobs(shape: Any, value: Any, path: str) -> Any:
    if shape.type_name == "blob" and isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError) as error:
            raise ParamValidationError(report=f"{path} is no base64: {error}") from error
    if shape.type_name == "list" and isinstance(value, list):
        member = shape.member
        return [_with_blobs(member, item, f"{path}[{place}]") for place, item in enumerate(value)]
    if shape.type_name == "structure" and isinstance(value, dict):
        members = shape.members
        return {
            name: _with_blobs(members[name], item, f"{path}[{name!r}]") if name in members else item
            for name, item in value.items()
        }
    return value


@lru_cache(maxsize=8)
def _names_of_blobs(shape: Any) -> frozenset[bytes]:
    return frozenset(f'"{name}"'.encode() for name in _blobs_in(shape, set()))


def _blobs_in(shape: Any, seen: set[str]) -> Iterator[str]:
    """Yield the names of the members that are bytes, in all that the shape is made of."""
    if shape.name in seen:
        return
    seen.add(shape.name)
    if shape.type_name == "list":
        yield from _blobs_in(shape.member, seen)
    elif shape.type_name == "structure":
        for name, member in shape.members.items():
            if member.type_name == "blob":
                yield name
            yield from _blobs_in(member, seen)
