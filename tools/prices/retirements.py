"""Writes `retirements.csv` by the anthropic SDK and litellm's prices: `python -m tools.prices.retirements`.

Both tell the day on which a provider plans to serve a model no more. The SDK is right about its own models.
"""

import csv
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .litellm_prices import installed_file

FILE = Path("src/llm_provider/_features/models/retirements.csv")
_PROVIDERS = ("anthropic", "gemini", "openai")
_NO_MODEL = re.compile(r"ft:|.*\d-x-\d|sora|veo|.*(image|tts|whisper|transcribe|realtime|native-audio|live)")
"""Prices of fine-tuned models and of media that no call of the library has."""


def read_rows() -> list[tuple[str, str, str, str]]:
    """The rows of the installed packages: provider, model, day and source."""
    rows = {(provider, model): row for provider, model, *row in (*_of_litellm(), *_of_anthropic())}
    return sorted((*key, *row) for key, row in rows.items())  # type: ignore[misc]  # two and two


def _of_litellm() -> Iterator[tuple[str, str, str, str]]:
    entries: Mapping[str, Mapping[str, Any]] = json.loads(installed_file().read_text())
    for name, entry in entries.items():
        provider, day = entry.get("litellm_provider"), entry.get("deprecation_date")
        model = name.removeprefix(f"{provider}/")
        if provider in _PROVIDERS and isinstance(day, str) and not _NO_MODEL.match(model):
            yield provider, model, day, f"litellm {version('litellm')}"


def _of_anthropic() -> Iterator[tuple[str, str, str, str]]:
    from anthropic.resources.messages import messages

    deprecated: Mapping[str, str] = vars(messages)["DEPRECATED_MODELS"]
    for model, words in deprecated.items():
        plain = re.sub(r"(?<=\d)(st|nd|rd|th)", "", words)
        day = datetime.strptime(plain, "%B %d, %Y").replace(tzinfo=UTC).date().isoformat()
        yield "anthropic", model, day, f"anthropic {version('anthropic')}"


if __name__ == "__main__":
    with FILE.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([("provider", "model", "retires_at", "source"), *read_rows()])
