"""Hugging Face datasets: `Dataset.map` runs an asynchronous function for a thousand rows, in one process."""

from datasets import Dataset

from llm_provider import Client, LLMError

client = Client()


async def ask(row: dict) -> dict:
    """Answer a row. An exception would end the map."""
    try:
        return {"text": (await client.acall("gpt-6.1-sol", row["prompt"])).text, "error": None}
    except LLMError as error:
        return {"text": None, "error": type(error).__name__}


prompts = [f"row {number}" for number in range(199)] + [""]
rows = Dataset.from_dict({"prompt": prompts}).map(ask, load_from_cache_file=False)
errors = [row["error"] for row in rows if row["error"]]
print(f"{len(rows)} rows, {len(errors)} failed: {errors[0]}")
