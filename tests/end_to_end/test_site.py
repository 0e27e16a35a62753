"""The configuration of the website fits the pages; `make docs` builds them and checks the rest."""

import importlib
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS, README = ROOT / "docs", ROOT / "README.md"
CONFIGURATION = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
NAV = re.findall(r"^ +- [^:]+: (\S+\.md)$", CONFIGURATION.partition("\nnav:\n")[2], re.MULTILINE)
OUTSIDE = {"CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}
"""The pages that are not in docs/, which website/hooks.py adds."""


WRITTEN_BY_PROGRAMS = {
    "features.md", "request-fields.md", "reliability.md", "performance.md", "performance-data.md",
}  # fmt: skip
FOR_CONTRIBUTORS = {"design.md", "reports.md"}
PAGES = sorted(page for path in DOCS.glob("*.md") if (page := path.name) not in WRITTEN_BY_PROGRAMS)


def count_words(page: Path) -> int:
    """The words of a page outside of its examples. Signs alone, as between the cells of a table, are none."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return len([word for word in text.split() if re.search(r"\w", word)])


def test_the_manual_is_short() -> None:
    """30 pages and 40,000 words with the README. What programs write, and the reports, are not counted."""
    assert len(PAGES) <= 30
    assert sum(map(count_words, [README, *(DOCS / page for page in PAGES if page != "reports.md")])) <= 40_000


@pytest.mark.parametrize("page", [page for page in PAGES if page not in FOR_CONTRIBUTORS])
def test_a_page_says_first_when_not_to_read_it(page: str) -> None:
    """Its first paragraph has the words "Do not read", and a link to the page to read instead."""
    title, first = (DOCS / page).read_text(encoding="utf-8").split("\n\n")[:2]
    assert re.fullmatch("# .+", title)
    assert re.search(r"\bDo\s+not\s+read\b.*?\]\([^)]+\.md", first, re.DOTALL)


def test_the_navigation_has_every_page_once() -> None:
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert sorted(NAV) == sorted(pages | OUTSIDE)
    assert all((ROOT / page).exists() for page in OUTSIDE)


def test_every_page_that_the_sources_name_exists() -> None:
    """Docstrings, messages and comments name a page by its path in the repository."""
    folders = ("src", "tests", "tools", "benchmarks", "examples")
    files = [*(path for folder in folders for path in (ROOT / folder).rglob("*.py")), *ROOT.glob("*.md")]
    named = {
        page for path in files for page in re.findall(r"docs/([\w-]+\.md)", path.read_text(encoding="utf-8"))
    }
    assert {page for page in named if not (DOCS / page).exists()} == set()


@pytest.mark.parametrize("module", ["llm_provider", "llm_provider.simulator"])
def test_the_reference_has_every_public_name_once(module: str) -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((DOCS / "reference").glob("*.md")))
    names = re.findall(rf"^::: {re.escape(module)}\.(\w+)$", text, re.MULTILINE)
    assert sorted(names) == sorted(importlib.import_module(module).__all__)


ELSEWHERE = {
    "litellm": "completion acompletion text_completion batch_completion embedding aembedding Router "
    "model_list rpm fallbacks completion_cost token_counter register_model num_retries drop_params "
    "mock_response caching max_budget success_callback failure_callback CustomLogger Cache api_base "
    "stream_chunk_builder RateLimitError model_validate_json max_completion_tokens get_model_info",
    "openai": "AsyncOpenAI OpenAI chat completions create parse embeddings responses batches prompt_tokens "
    "max_output_tokens with_raw_response stream_options instructions max_retries with_options semaphore",
    "LangChain": "ChatOpenAI ChatAnthropic init_chat_model invoke ainvoke batch abatch max_concurrency "
    "callbacks HumanMessage ChatPromptTemplate PydanticOutputParser with_structured_output bind_tools "
    "AgentExecutor with_fallbacks with_retry InMemoryRateLimiter set_llm_cache SQLiteCache usage_metadata "
    "get_openai_callback OpenAIEmbeddings embed_documents",
}
"""Library → its words for what is here under another name."""


ANSWERS = {
    "calls.md": "completion acompletion batch_completion drop_params create invoke",
    "results.md": "batch_completion",
    "streaming.md": "completion stream=True",
    "embeddings.md": "embedding embeddings.create embed_documents",
    "keys.md": "Router model_list",
    "retries.md": "num_retries fallbacks with_retry with_fallbacks rpm tpm InMemoryRateLimiter "
    "max_connections",
    "cache.md": "caching set_llm_cache",
    "costs.md": "completion_cost get_openai_callback token_counter max_budget BudgetManager cost_limit",
    "simulator.md": "mock_response FakeListChatModel mockllm",
    "observability.md": "success_callback CustomLogger callbacks",
    "structured-output.md": "parse with_structured_output",
    "tools.md": "bind_tools",
    "batches.md": "batches.create",
    "evaluation.md": "inspect_ai epochs",
}
"""Page → words of other libraries for what it answers."""


def read_words(pages: Iterable[str]) -> set[str]:
    """As the site's search does: pages are divided by its separator, and case says nothing."""
    separator = re.search(r"^ +separator: '(.*)'$", CONFIGURATION, re.MULTILINE)
    assert separator is not None
    text = " ".join((DOCS / page).read_text(encoding="utf-8") for page in pages)
    return {word.strip("*'.").lower() for word in re.split(separator[1], text) if word}


@pytest.mark.parametrize("library", ELSEWHERE)
def test_the_search_finds_the_words_of_other_libraries(library: str) -> None:
    hooks = (ROOT / "website" / "hooks.py").read_text(encoding="utf-8")
    unsearched = re.search(r"^UNSEARCHED = \{(.*)\}", hooks, re.MULTILINE)
    assert unsearched is not None
    words = read_words(page for page in NAV if page not in OUTSIDE and f'"{page}"' not in unsearched[1])
    assert [word for word in ELSEWHERE[library].split() if word.lower() not in words] == []


@pytest.mark.parametrize("page", ANSWERS)
def test_a_page_has_the_words_of_other_libraries_for_what_it_answers(page: str) -> None:
    words = read_words([page])
    assert [word for word in re.split("[ .=]", ANSWERS[page]) if word.lower() not in words] == []


def test_a_page_loads_nothing_from_other_servers() -> None:
    """A font of Google's and the counts of stars are what the theme loads by default."""
    assert re.search(r"^  font: false", CONFIGURATION, re.MULTILINE)
    assert not re.search(r"^repo_url:", CONFIGURATION, re.MULTILINE)
    assert not re.search(r"^extra_(css|javascript):.*//", CONFIGURATION, re.MULTILINE)
