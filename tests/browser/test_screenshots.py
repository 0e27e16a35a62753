"""The screenshots of docs/images: six states of the page, made again from the same answers.

Each run writes them into build/page, from where a changed picture is copied into docs/images.
"""

import base64
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Choice, RateLimitError, Response, Results, Timing, Usage

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
MOST_BYTES = 150_000
SYSTEM = "Solve the task in one or two sentences. Give the number alone in the last line."
REASONS = {
    "*": (
        "{a} * {b} is {a} * {tens} plus {a} * {ones}, which is {left} plus {right}.",
        "Long multiplication: {left} + {right}.",
    ),
    "+": (
        "First the tens and then the ones: {a} + {tens} is {sum}, and {ones} more.",
        "Adding {tens} and then {ones} to {a}.",
    ),
}  # fmt: skip


def make_results(model: str, price: float, skill: float) -> Results[Any]:
    """Scored answers to sums and products, which are the same in each run."""
    tasks, luck = random.Random(7), random.Random(model)
    results: list[Any] = []
    for number in range(120):
        a, b, mark = tasks.randrange(11, 99), tasks.randrange(12, 99), tasks.choice("*+")
        value = a * b if mark == "*" else a + b
        about = {"id": f"{'product' if mark == '*' else 'sum'}-{number}", "expected": str(value)}
        if number == 41 and skill < 0.8:
            error = RateLimitError(
                "no capacity is left for this model", provider="p", model=model, status=429
            )
            error.metadata = about
            results.append(error)
            continue
        parts = {"a": a, "b": b, "tens": b // 10 * 10, "ones": b % 10, "sum": a + b // 10 * 10}
        parts |= {"left": a * parts["tens"], "right": a * parts["ones"]}
        answer = value if luck.random() < skill else value + luck.choice([-10, 1, 10])
        text = f"{REASONS[mark][luck.random() < skill].format(**parts)}\n{answer}"
        usd = price * (40 + len(text))
        cut = {"text": text[:16], "finish_reason": "length"} if number == 77 else {"text": text}
        results.append(Response(
            choices=(Choice(**cut),), usage=Usage(input_tokens=40 + number % 5, output_tokens=len(text) // 4),
            model=model, provider="p", cost=usd, price=usd, timing=Timing(total=luck.uniform(0.4, 2.5)),
            prompt=[
                {"role": "system", "content": SYSTEM},
                {"role": "user", "content": f"What is {a} {mark} {b}?"},
            ], metadata=about,
        ))  # fmt: skip
    return Results(results).score(lambda sample: sample.text.split()[-1] == sample.metadata["expected"])


def show_two(show: Callable[..., Any], scheme: str = "light") -> Any:
    first, second = make_results("gpt-6.1-sol", 4e-6, 0.9), make_results("claude-haiku-5-5", 4e-7, 0.7)
    return show(first, beside=second, scheme=scheme)


def show_one(show: Callable[..., Any], scheme: str = "light") -> Any:
    return show(make_results("claude-haiku-5-5", 4e-7, 0.7), scheme=scheme)


STATES: dict[str, tuple[Callable[..., Any], tuple[int, int], tuple[str, ...]]] = {
    "results-page": (show_two, (1280, 640), ()),
    "page-row": (show_one, (1280, 640), ("openRow(5)",)),
    "page-differences": (show_two, (1280, 640), ("openRow(3)",)),
    "page-search": (show_one, (1280, 640), ("search('\"multiplication: 1\" 0')",)),
    "page-phone": (show_one, (390, 780), ()),
    "page-dark": (lambda show: show_one(show, "dark"), (1280, 640), ()),
}
"""What each picture shows, its width and height, and what the reader has done."""
SEARCH = """globalThis.search = (text) => {
    document.getElementById("search").value = text;
    document.getElementById("search").dispatchEvent(new Event("input"));
}"""
COMPARE = """async (pictures) => {
    const [one, two] = await Promise.all(pictures.map(async (data) => {
        const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${data}`)).blob());
        const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
        canvas.drawImage(image, 0, 0);
        return [image.width, image.height, canvas.getImageData(0, 0, image.width, image.height).data];
    }));
    if (one[0] !== two[0] || one[1] !== two[1]) return 1;
    let changed = 0;
    for (let at = 0; at < one[2].length; at += 4) {
        changed += [0, 1, 2].some((part) => Math.abs(one[2][at + part] - two[2][at + part]) > 48);
    }
    return changed / (one[0] * one[1]);
}"""
"""The share of the pixels that differ between two pictures."""


@pytest.mark.parametrize("name", STATES)
def test_the_pictures_of_the_page_are_made_again(name: str, show: Callable[..., Any], browser: Any) -> None:
    open_page, (width, height), steps = STATES[name]
    page = open_page(show)
    page.set_viewport_size({"width": width, "height": height})
    page.evaluate(SEARCH)
    for step in steps:
        page.evaluate(step)
    page.wait_for_timeout(500)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    made = page.screenshot(path=ROOT / "build/page" / f"{name}.png", animations="disabled")
    assert len(made) <= MOST_BYTES
    kept = (ROOT / "docs" / "images" / f"{name}.png").read_bytes()
    blank = browser.new_page()
    changed = blank.evaluate(COMPARE, [base64.b64encode(each).decode() for each in (made, kept)])
    blank.close()
    # Letters have other edges with other fonts; what stands where it should is less than a tenth of a page.
    assert changed < 0.1, f"look at build/page/{name}.png, and copy it into docs/images"
