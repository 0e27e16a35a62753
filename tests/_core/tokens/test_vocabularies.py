"""Every model of OpenAI has an encoding, and weights are whole. Golden pairs have other models."""

import csv
from pathlib import Path

from llm_provider._core.tokens.vocabularies import ENCODINGS, VOCABULARIES, load_weights, vocabulary_of

ROOT = Path(__file__).parents[3]


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
