"""What `tools.release_rehearsal` runs in each version: 20 answers, and a batch for the new one to await."""

import json
import sys
from importlib.metadata import version

from llm_provider import batches, call_many, submit_many

MODEL = "gpt-6.1-sol"


def main(is_new: bool) -> None:
    """Print what this version does in the folder; the new one sends no question."""
    questions = [f"What is {number}+{number}?" for number in range(20)]
    answers = call_many(MODEL, questions, max_tokens=60, cache="only" if is_new else "use")
    facts = {"version": version("llm-provider-call"), "texts": answers.texts, "cost": answers.cost}
    facts["found"] = [batch.status for batch in batches()]
    batch = submit_many(MODEL, [f"What is {number}+7?" for number in range(12)], max_tokens=60)
    facts["rows"] = batch.results().texts if is_new else []
    print(json.dumps({**facts, "status": batch.status}))


if __name__ == "__main__":
    main(is_new=sys.argv[1] == "new")
