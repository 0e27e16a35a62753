"""Who answered: `ServedBy`."""

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedBy:
    """The machine that answered, as far as the reply and its headers tell. What they do not tell is None.

    `host` is the host that a router chose, or the deployment of a cloud. `model` is the name in the reply,
    and `snapshot` a name with a date, or a version of the weights. `fingerprint` is the provider's identifier
    of its configuration; several are in use at the same time. `engine` and `engine_version` are the server's
    software, such as "vllm" and "0.21.0". `region` is where the answer was computed. `request_id` is the
    identifier that the provider's support asks for. No reply tells the `quantization` today.

    >>> ServedBy(host="DeepInfra", fingerprint="fp_1").to_dict()
    {'host': 'DeepInfra', 'fingerprint': 'fp_1'}
    """

    host: str | None = None
    model: str | None = None
    snapshot: str | None = None
    fingerprint: str | None = None
    engine: str | None = None
    engine_version: str | None = None
    region: str | None = None
    service_tier: str | None = None
    quantization: str | None = None
    request_id: str | None = None

    def to_dict(self) -> dict[str, str]:
        """The fields that are not None."""
        values = ((name, getattr(self, name)) for name in FIELDS)
        return {name: value for name, value in values if value is not None}


FIELDS = tuple(entry.name for entry in fields(ServedBy))
