"""The sources of tokens that clouds have, in one server on this machine."""

import datetime
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import orjson
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

SECRET = "secret-key-of-aws/"
"""The beginning of AWS's secret keys. The number of the token follows."""


class FakeCloud:
    """Gives each token once more than before, as `token-1`, `token-2`, and so on.

    Attributes:
        fetched: Tokens that were given.
        life: Seconds for which one is good.
        status: The status of the answers; 200 for a token.
        pause: Seconds before an answer.
        path: The path of the last request for a token.
        posts: The requests with a body: path, headers in lower case, body.
        refused: Statuses and bodies of the answers to the next of these.
        reply: The body of their answers.
    """

    def __init__(self) -> None:
        self.fetched, self.life, self.status, self.pause = 0, 3600.0, 200, 0.0
        self.path = ""
        self.posts: list[tuple[str, dict[str, str], bytes]] = []
        self.refused: list[tuple[int, dict[str, str], Any]] = []
        self.reply: Any = {}
        cloud = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, body = cloud.answer(self.path)
                self.send(status, body, {"Metadata-Flavor": "Google"})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                if self.path.endswith("/token"):
                    self.send(*cloud.answer(self.path), {})
                    return
                cloud.posts.append((self.path, headers, body))
                status, more, reply = cloud.refused.pop(0) if cloud.refused else (200, {}, cloud.reply)
                self.send(status, reply, more)

            def send(self, status: int, body: Any, headers: dict[str, str]) -> None:
                raw = body.encode() if isinstance(body, str) else orjson.dumps(body)
                self.send_response_only(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: Any) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str) -> tuple[int, Any]:
        """The answer of the source that has a path."""
        if "token" not in path and "credentials" not in path:
            # Of Google's metadata server.
            return 200, {"email": "default", "scopes": [], "aliases": []} if "instance" in path else "project"
        self.path = path
        time.sleep(self.pause)
        if self.status != 200:
            return self.status, {"error": "down"}
        self.fetched += 1
        end = time.time() + self.life
        token = f"token-{self.fetched}"
        if "aws" in path:
            moment = datetime.datetime.fromtimestamp(end, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            key = {"AccessKeyId": f"ASIA-{token}", "SecretAccessKey": f"{SECRET}{self.fetched}"}
            return 200, {**key, "Token": f"session-{token}", "Expiration": moment}
        return 200, {"access_token": token, "expires_in": int(self.life), "expires_on": str(int(end)),
                     "token_type": "Bearer", "resource": "r"}  # fmt: skip

    def write_account(self, folder: Path) -> Path:
        """The file of a service account of Google's, whose tokens come from here."""
        key = rsa.generate_private_key(public_exponent=65537, key_size=1024)
        form = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        account = {
            "type": "service_account", "client_email": "a@b.c", "token_uri": f"http://{self.address}/google/token",
            "private_key": key.private_bytes(*form).decode(), "project_id": "project", "private_key_id": "1",
        }  # fmt: skip
        (folder / "account.json").write_bytes(orjson.dumps(account))
        return folder / "account.json"

    def point(self, monkeypatch: pytest.MonkeyPatch, nowhere: Path) -> None:
        """Point all three chains here, by their documented variables, and to no file of the user's."""
        variables = {
            "IDENTITY_ENDPOINT": f"http://{self.address}/entra/token", "IDENTITY_HEADER": "header",
            "AZURE_TOKEN_CREDENTIALS": "ManagedIdentityCredential",
            "GOOGLE_APPLICATION_CREDENTIALS": str(self.write_account(nowhere)),
            "GOOGLE_CLOUD_PROJECT": "project",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"http://{self.address}/aws/credentials",
            "AWS_EC2_METADATA_DISABLED": "true", "AWS_REGION": "eu-west-1",
            "AWS_CONFIG_FILE": f"{nowhere}/config", "AWS_SHARED_CREDENTIALS_FILE": f"{nowhere}/keys",
            "CLOUDSDK_CONFIG": str(nowhere), "HOME": str(nowhere),
        }  # fmt: skip
        for name, value in variables.items():
            monkeypatch.setenv(name, value)


def signature_of(post: tuple[str, dict[str, str], bytes], address: str, service: str) -> str:
    """The signature that botocore computes for a request as it arrived."""
    path, headers, body = post
    signed = headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    number = headers["authorization"].partition("ASIA-token-")[2].partition("/")[0]
    request = AWSRequest("POST", f"http://{address}{path}", {name: headers[name] for name in signed}, body)
    request.context["timestamp"] = headers["x-amz-date"]
    signer = SigV4Auth(Credentials("a", f"{SECRET}{number}"), service, "eu-west-1")
    return str(signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request))
