"""The files of a server's certificate; tests/end_to_end/test_routes.py has clients that trust it."""

import ssl
import stat
from pathlib import Path

import pytest

from llm_provider.simulator._server.certificate import write_certificate


def test_the_files_are_those_of_one_key_that_only_the_owner_reads(tmp_path: Path) -> None:
    certificate, key = write_certificate(tmp_path)
    assert {certificate, key} == set(tmp_path.iterdir())
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    (tmp_path / "other").mkdir()
    other, _ = write_certificate(tmp_path / "other")
    with pytest.raises(ssl.SSLError, match="KEY_VALUES_MISMATCH"):
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(other, key)
