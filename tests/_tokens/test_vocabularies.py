"""Which vocabulary a model has, and that the weights of each are whole."""

import csv
from pathlib import Path

import pytest

from llm_provider._tokens.vocabularies import ENCODINGS, VOCABULARIES, load_weights, vocabulary_of

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("provider", "model", "vocabulary"),
    [
        ("openai", "gpt-4-turbo", "cl100k_base"),
        ("openai", "ft:gpt-3.5-turbo:mine::1", "cl100k_base"),
        ("openai", "gpt-4o-mini", "o200k_base"),
        ("openai", "ft:gpt-4.1-2025-04-14:mine::1", "o200k_base"),
        ("gemini", "gemini-3.8-flash", "gemma"),
        ("openrouter", "google/gemini-3.8-flash", "gemma"),
        ("mistral", "mistral-large-4", "tekken"),
        ("together_ai", "Qwen/Qwen3.7-Max", "qwen"),
        ("openrouter", "qwen/qwen-max", "qwen"),
        ("groq", "qwen/qwen3-32b", "qwen_3"),
        ("together_ai", "Qwen/Qwen2.5-72B-Instruct", "qwen_3"),
        ("together_ai", "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B", "qwen_3"),
        ("groq", "meta-llama/llama-4-scout-17b-16e-instruct", "llama"),
        ("together_ai", "deepseek-ai/DeepSeek-V4", "deepseek"),
        ("groq", "deepseek-r1-distill-llama-70b", "llama"),
        ("xai", "grok-5", None),
    ],
)
def test_the_vocabulary_of_a_model(provider: str, model: str, vocabulary: str | None) -> None:
    assert vocabulary_of(provider, model) == vocabulary


def test_every_model_of_openai_in_the_price_table_has_an_encoding() -> None:
    with (ROOT / "prices.csv").open(encoding="utf-8") as file:
        models = {row["model"] for row in csv.DictReader(file) if row["provider"] == "openai"}
    assert len(models) > 50
    assert {vocabulary_of("openai", model) for model in models} == set(ENCODINGS)


def test_every_vocabulary_has_weights_that_count_something() -> None:
    assert set(load_weights()) == set(VOCABULARIES)
    for weights in load_weights().values():
        assert all(weight >= 0 for weight in weights.values())
        assert weights["words"] > 0.5
