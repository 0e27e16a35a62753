"""The vocabularies of models, and how many tokens each makes of words, signs and scripts (`weights.csv`).

The weights are a least-squares fit of relative errors, without negative weights, to the counts of each
tokenizer for 7,700 pieces of text: code, documentation, licences, manual pages and translations of other
packages in 41 languages, and made-up numbers, tables, logs, JSON, addresses, random letters and emoji. No
text of this repository is among them, except the first paragraphs of tests/data/scripts.json. A weight of a
script is per character; "runs" are characters of a script without another between them.
"""

import functools
import os
import re

VOCABULARIES = ("o200k_base", "cl100k_base", "gemma", "tekken", "deepseek", "qwen", "llama", "qwen_3")
"""OpenAI's two encodings; those of Gemma 3, Mistral (Tekken), DeepSeek V4, Qwen 3.6, Llama 3 and Qwen 3,
whose weights of languages were fitted to 6,000 pieces of translations in 90 languages."""

ENCODINGS = VOCABULARIES[:2]
"""Those that tiktoken has."""

_OLD_OPENAI = re.compile(r"(openai/|ft:)*(gpt-3\.5|gpt-35|gpt-4(-|$)|text-|davinci|babbage|curie|ada)")
_LIKE = tuple(
    (re.compile(pattern), vocabulary)
    for pattern, vocabulary in (
        (r"(.*/)?gpt-oss", "o200k_base"),
        (r"(.*/)?(gemini|gemma|learnlm)", "gemma"),
        (r"(.*/)?(open-)?(mistral|mixtral|ministral|codestral|devstral|magistral|pixtral|voxtral)", "tekken"),
        (r"(.*/)?(deepseek-r1-distill-qwen|qwen-?([12]|3(?!\.[5-9]))|qwq|qvq)", "qwen_3"),
        (r"(.*/)?qwen", "qwen"),
        (r"(.*/)?(deepseek-r1-distill-|meta-)?llama-?[3-9]", "llama"),
        (r"(.*/)?deepseek(?!-r1-distill)", "deepseek"),
    )
)
_OF_PROVIDER = {"gemini": "gemma", "mistral": "tekken", "deepseek": "deepseek"}


def vocabulary_of(provider: str, model: str) -> str | None:
    """The vocabulary of a model, or one like it; None if none is known, as for Anthropic.

    tiktoken names `o200k_base` for all of OpenAI's chat models from gpt-4o to gpt-5, and none newer, so later
    models are assumed to share it. Google does not publish Gemini's vocabulary; Gemma is its open relative.
    """
    name = model.lower()
    if provider == "openai" or name.startswith("openai/"):
        return "cl100k_base" if _OLD_OPENAI.match(name) else "o200k_base"
    return next((like for pattern, like in _LIKE if pattern.match(name)), _OF_PROVIDER.get(provider))


@functools.cache
def load_weights() -> dict[str, dict[str, float]]:
    """Tokens per count of `text.counts`, by vocabulary."""
    rows = [(name, list(map(float, weights))) for name, *weights in _read_table("weights.csv")]
    return {
        vocabulary: {name: weights[column] for name, weights in rows}
        for column, vocabulary in enumerate(VOCABULARIES)
    }


@functools.cache
def load_stop_words() -> dict[str, list[str]]:
    """The languages, with Latin letters, that have a word among their most frequent ones; by word."""
    languages: dict[str, list[str]] = {}
    for language, words in _read_table("stop_words.csv"):
        for word in words.split():
            languages.setdefault(word, []).append(language)
    return languages


def _read_table(name: str) -> list[list[str]]:
    """The rows below the header of a file beside this module. No cell is quoted."""
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as file:
        return [line.split(",") for line in file.read().splitlines()[1:]]
