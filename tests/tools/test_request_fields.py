"""Every field of the SDKs' requests is written by a parameter, or has a reason why it is not."""

import pytest

from tools import request_fields
from tools.request_fields import APIS, PAGE, REASONS, page, read_rows, unsent


@pytest.fixture(scope="module")
def fields_without_a_parameter() -> dict[str, list[str]]:
    return unsent()


def test_the_page_is_that_of_the_reasons() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make request-fields`"


@pytest.mark.parametrize("api", APIS)
def test_every_field_of_an_sdk_is_written_or_has_a_reason(
    api: str, fields_without_a_parameter: dict[str, list[str]]
) -> None:
    reasons = {row.field for row in read_rows() if row.api == api}
    unknown = set(fields_without_a_parameter[api]) - reasons
    assert not unknown, f"{REASONS.name} says nothing of {unknown}: what writes it, or why does nothing?"


@pytest.mark.parametrize("api", APIS)
def test_no_reason_is_out_of_date(api: str) -> None:
    sent = APIS[api][1]()
    assert {row.field for row in read_rows() if row.api == api} & sent == set()


def test_a_field_of_a_new_sdk_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    known, sent = APIS["OpenAI embeddings"]
    monkeypatch.setitem(request_fields.APIS, "OpenAI embeddings", (lambda: {*known(), "new"}, sent))  # type: ignore[arg-type]  # a dict
    assert "new" in unsent()["OpenAI embeddings"]


def test_reasons_are_in_order_and_whole() -> None:
    rows = read_rows()
    order = list(APIS)
    assert rows == sorted(rows, key=lambda row: (order.index(row.api), row.field))
    assert all(all(row) and row.reason.endswith(".") for row in rows)
