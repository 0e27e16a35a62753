"""Dask has no asynchronous functions, so each partition is one `call_many`."""

import dask.bag
from dask.distributed import LocalCluster

from llm_provider import LLMError, call_many


def ask(prompts: list) -> list:
    """Answer a partition, in a worker."""
    prompts = list(prompts)
    results = call_many("gpt-6.1-sol", prompts, progress=False)
    return [
        {"prompt": prompt, "text": None, "error": type(result).__name__}
        if isinstance(result, LLMError)
        else {"prompt": prompt, "text": result.text, "error": None}
        for prompt, result in zip(prompts, results, strict=True)
    ]


if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1) as cluster, cluster.get_client():
        prompts = [f"row {number}" for number in range(199)] + [""]
        rows = dask.bag.from_sequence(prompts, npartitions=8).map_partitions(ask).compute()
    errors = [row["error"] for row in rows if row["error"]]
    print(f"{len(rows)} rows, {len(errors)} failed: {errors[0]}")
