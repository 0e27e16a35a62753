"""The clouds whose batches lie in a bucket, with the methods of the simulator that `batch_kills` uses.

The servers are those of the tests: the simulator has no buckets.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

from llm_provider.simulator import Fault
from tests.cloud_batches import AmazonServer, CloudServer, GoogleServer

CLOUDS = {
    "vertex_ai": "vertex_ai/gemini-3.5-flash",
    "vertex_ai (Claude)": "vertex_ai/claude-haiku-5-5",
    "bedrock": "bedrock/anthropic.claude-haiku-4-5-20251001-v1:0",
}
"""Name → model."""

_PLACES = {
    "files.upload": "upload",
    "batches.create": "create",
    "batches.list": "list",
    "batches.retrieve": "retrieve",
    "files.download": "download",
}
"""A name of the simulator's → the kind of request at these servers."""

_FAULTS = {
    Fault(hang=True): "hang",
    Fault(stall_after=0): "lost and hang",
    Fault(stall_after=1): "half and hang",
    Fault(abort_after=0): "lost",
}


class BucketCloud:
    """A cloud, its bucket and its bill."""

    def __init__(self, name: str, server: CloudServer, address: str, prices: str) -> None:
        self._server, self._address = server, address
        provider, _, model = CLOUDS[name].partition("/")
        row = next(
            row
            for row in csv.DictReader(io.StringIO(prices))
            if (row["provider"], row["model"], row["variant"]) == (provider, model, "batch")
        )
        # Each answer has 10 tokens of input and 5 of output.
        self._price = (10 * Decimal(row["input"]) + 5 * Decimal(row["output"])) / 1_000_000

    def environment(self, *_: str) -> dict[str, str]:
        """The variables that lead a client here. The credentials hold no secret."""
        servers = ("GOOGLE_VERTEX_BASE_URL", "STORAGE_EMULATOR_HOST", "AWS_ENDPOINT_URL_BEDROCK")
        return {
            **dict.fromkeys((*servers, "AWS_ENDPOINT_URL_S3"), self._address),
            "VERTEX_BATCH_BUCKET": "gs://bucket/folder",
            "BEDROCK_BATCH_BUCKET": "s3://bucket/folder",
            "BEDROCK_BATCH_ROLE_ARN": "arn:aws:iam::123456789012:role/batches",
            "GOOGLE_CLOUD_PROJECT": "simulator",
            "AWS_REGION": "eu-west-1",
            "AWS_ACCESS_KEY_ID": "simulator",
            "AWS_SECRET_ACCESS_KEY": "simulator",
        }

    def inject(self, fault: Fault, *, match: str, **_: Any) -> None:
        """Order a fault for the next request of a kind."""
        self._server.faults.append((_PLACES[match], _FAULTS[fault]))

    def drop_faults(self) -> None:
        """Drop faults that no request has met."""
        self._server.faults.clear()

    def ledger(self) -> SimpleNamespace:
        """The counts and the bill since the start."""
        answered = self._server.answered.total()
        return SimpleNamespace(
            faults=self._server.met, answered=answered, billed=answered * self._price, in_flight=0
        )


@contextmanager
def open_cloud(name: str, prices: str) -> Iterator[BucketCloud]:
    """A cloud of `CLOUDS` while it serves. `prices` is the text of a price table."""
    server: CloudServer = AmazonServer() if name == "bedrock" else GoogleServer()
    with server.serve() as address:
        yield BucketCloud(name, server, address, prices)
