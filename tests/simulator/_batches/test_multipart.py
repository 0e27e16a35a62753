"""Forms with files are read as Python's own parser reads them."""

from __future__ import annotations

import io

import httpx2

from llm_provider.simulator._batches.multipart import Field, parse_fields


def test_a_form_of_an_sdk_is_read() -> None:
    content = b"--x\r\n\r\nlines \r\n--"
    files = {"file": ("a b.pdf", io.BytesIO(content), "application/pdf")}
    request = httpx2.Request("POST", "http://localhost", data={"purpose": "user_data"}, files=files)
    fields = parse_fields(request.headers["content-type"].encode(), request.read())
    assert fields == {
        "purpose": Field(b"user_data"),
        "file": Field(content, "a b.pdf", "application/pdf"),
    }


def test_another_body_has_no_fields() -> None:
    assert parse_fields(b"application/json", b"{}") == {}
    assert parse_fields(b"multipart/form-data; boundary=x", b"{}") == {}
