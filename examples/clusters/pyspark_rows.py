"""Spark has no asynchronous functions, so each partition is one `call_many`."""

import pandas as pd
from pyspark.sql import SparkSession

from llm_provider import LLMError, call_many


def ask(tables):
    """Answer a partition, in a worker."""
    for table in tables:
        results = call_many("gpt-6.1-sol", list(table["prompt"]), progress=False)
        failed = [isinstance(result, LLMError) for result in results]
        texts = [None if bad else result.text for bad, result in zip(failed, results, strict=True)]
        errors = [type(result).__name__ if bad else None for bad, result in zip(failed, results, strict=True)]
        yield pd.DataFrame({"prompt": table["prompt"], "text": texts, "error": errors})


if __name__ == "__main__":
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    prompts = [f"row {number}" for number in range(199)] + [""]
    table = spark.createDataFrame([(prompt,) for prompt in prompts], "prompt string").repartition(8)
    rows = table.mapInPandas(ask, "prompt string, text string, error string").collect()
    errors = [row.error for row in rows if row.error]
    print(f"{len(rows)} rows, {len(errors)} failed: {errors[0]}")
