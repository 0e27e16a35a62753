"""The Chromium of the machine, which `CHROMIUM` names, and pages of results in it."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Results

OFFLINE = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
"""A browser that asks for nothing by itself, also as root."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    # Only .venv-browser has the package, and every environment collects the tests.
    from playwright.sync_api import sync_playwright

    path = os.environ.get("CHROMIUM")
    if not path:
        pytest.fail("CHROMIUM names no browser: run `make test-browser`")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=path, args=OFFLINE)


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Show results in a new page. The test fails if the page reports an error or asks for anything."""
    problems: list[str] = []
    contexts = []

    def show(results: Any, *, scheme: str = "light", strict: bool = True, **options: Any) -> Any:
        path = tmp_path / "page.html"
        Results(results).to_html(path, **options)
        contexts.append(browser.new_context(color_scheme=scheme, viewport={"width": 1440, "height": 900}))
        page = contexts[-1].new_page()
        if strict:
            page.on("console", lambda message: problems.append(message.text))
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.on("request", lambda request: problems.append(request.url))
        page.goto(path.as_uri())
        page.wait_for_selector(".ag-row")
        # The page itself is a request.
        assert not strict or problems.pop(0) == path.as_uri()
        return page

    yield show
    for context in contexts:
        context.close()
    assert [problem for problem in problems if not problem.startswith("data:")] == []
