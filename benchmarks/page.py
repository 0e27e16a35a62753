"""What the page of results costs a browser: 10,000 rows, of one run and of two side by side; 100,000 rows.

    CHROMIUM=/usr/bin/chromium .venv-browser/bin/python -m benchmarks.page [--write]

`make test-browser` makes .venv-browser. The times are seconds of the processor in the page's main thread, and
its longest task. `--write` puts the table into benchmarks/results/page.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from llm_provider import Choice, Response, Results, Usage

from . import report

ROWS, LARGE, FRAMES, OPENINGS = 10_000, 100_000, 200, 5
WORDS = (
    "a",
    "rule",
    "of",
    "weights",
    "and",
    "measures",
    "that",
    "models",
    "know",
    "by",
    "heart",
    "since",
    "long",
)
NEXT_FRAME = "await new Promise(requestAnimationFrame);"
STEPS = {
    f"scroll {2 * FRAMES} rows in {FRAMES} steps": f"""
        const view = document.querySelector(".ag-grid-viewport, .ag-body-viewport");
        for (let step = 0; step <= {FRAMES}; step++) {{
            view.scrollTop = 100 * step;
            {NEXT_FRAME}
        }}""",
    f"scroll over all rows in {FRAMES} steps": f"""
        const view = document.querySelector(".ag-grid-viewport, .ag-body-viewport");
        for (let step = 0; step <= {FRAMES}; step++) {{
            view.scrollTop = view.scrollHeight * step / {FRAMES};
            {NEXT_FRAME}
        }}""",
    "sort by the answer": 'grid.applyColumnState({state: [{colId: "text 0", sort: "asc"}]});',
    "filter the answer": """
        await grid.setColumnFilterModel("text 0", {filterType: "text", type: "contains", filter: "heart"});
        grid.onFilterChanged();""",
    "search in everything": 'words = ["weights", "question"]; grid.onFilterChanged();',
    "open a row": "openRow(3);",
}
OBSERVE = """window.tasks = [];
    new PerformanceObserver((list) => list.getEntries().forEach((entry) => tasks.push(entry.duration)))
        .observe({type: "longtask", buffered: true})"""


def make_results(model: str, step: int, rows: int = ROWS, words: int = 80) -> Results[Any]:
    """Answers of 80 words to prompts of 5."""
    return Results(
        Response(
            choices=(Choice(text=" ".join(WORDS[(row * at * step) % len(WORDS)] for at in range(words))),),
            usage=Usage(input_tokens=row, output_tokens=80), model=model, provider="p", cost=row / 1e6,
            prompt=f"Question {row}: which rule holds?", metadata={"id": row, "topic": WORDS[row % 9]},
        )
        for row in range(rows)
    )  # fmt: skip


def read(session: Any, name: str) -> float:
    """A metric of the page; of times, the seconds of the processor in its main thread."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(float(metric["value"]) for metric in metrics if metric["name"] == name)


def open_page(browser: Any, path: Path) -> tuple[Any, Any, float]:
    """A page and its metrics, and the seconds until its first row is shown."""
    page = browser.new_page()
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.add_init_script(OBSERVE)
    begin = time.monotonic()
    page.goto(path.as_uri(), wait_until="commit")
    page.wait_for_selector(".ag-row")
    return page, session, time.monotonic() - begin


def measure_large(browser: Any, folder: Path) -> list[str]:
    """How long a page of many rows takes until its first row is shown, and what its steps cost."""
    path, results = folder / "large.html", make_results("first", 1, LARGE, 104)
    length = sum(len(text or "") for text in results.texts) // LARGE
    results.to_html(path)
    about = f"{LARGE:,} rows of {length} characters, {path.stat().st_size / 1e6:.0f} MB"
    times = []
    for _ in range(OPENINGS):
        load = os.getloadavg()[0]
        page, session, seconds = open_page(browser, path)
        times.append((read(session, "TaskDuration"), seconds))
        print(f"{about}: first row after {times[-1][0]:.2f} CPU seconds, {seconds:.2f} s, load {load:.1f}")
        page.close()
    used, seconds = (statistics.median(column) for column in zip(*times, strict=True))
    opened = f"open until the first row, {seconds:.2f} s at load {load:.0f}, median of {OPENINGS}"
    head = f"| {about} | CPU seconds | longest task, ms |"
    return ["", head, "|---|---|---|", f"| {opened} | {used:.2f} | |", *measure(browser, path)]


def measure(browser: Any, path: Path) -> list[str]:
    """The rows of the table for one page."""
    page, session, _ = open_page(browser, path)
    # The texts for the search are made while nothing else is done.
    while page.evaluate("prepared < rows.length"):
        page.wait_for_timeout(100)
    lines = [_line(page, "load, until idle", read(session, "TaskDuration"))]
    for label, code in STEPS.items():
        before = read(session, "TaskDuration")
        page.evaluate(f"async () => {{ tasks.length = 0; {code} {NEXT_FRAME} }}")
        page.wait_for_timeout(500)
        lines.append(_line(page, label, read(session, "TaskDuration") - before))
    session.send("HeapProfiler.collectGarbage")
    heap, elements = read(session, "JSHeapUsedSize") / 1e6, page.locator(".ag-row").count()
    return [
        *lines,
        f"| memory of the script at the end, MB; rows that are elements | {heap:.0f} | {elements} |",
    ]


def _line(page: Any, label: str, seconds: float) -> str:
    longest = max([0, *page.evaluate("tasks")])
    print(label, f"{seconds:.2f} s of the processor, longest task {longest:.0f} ms", flush=True)
    return f"| {label} | {seconds:.2f} | {longest:.0f} |"


def main() -> None:
    """Measure, print, and write the table if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the result")
    arguments = parser.parse_args()
    first, second = make_results("first", 1), make_results("second", 3)
    lines, version = [""], ""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=os.environ["CHROMIUM"], args=options)
        version = browser.version
        for name, beside in (("one run", None), ("two runs", second)):
            path, begin = Path(folder, "page.html"), time.process_time()
            first.to_html(path, beside=beside)
            seconds, size = time.process_time() - begin, path.stat().st_size / 1e6
            about = f"{size:.1f} MB, written in {seconds:.1f} CPU seconds"
            head = f"| {name}: {about} | CPU seconds | longest task, ms |"
            lines += ["", head, "|---|---|---|", *measure(browser, path)]
        lines += measure_large(browser, Path(folder))
    if arguments.write:
        text = (
            f"{ROWS:,} rows in headless Chromium {version} without a graphics card. "
            "It paints with the processor, and other programs kept both cores busy. "
            "The longest task depends on what else the machine does; CPU seconds depend on it less."
        )
        report.write_lines("page", "The page of results", "page", text, lines[2:])


if __name__ == "__main__":
    main()
