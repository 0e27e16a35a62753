"""Whatever writes a file for a user follows links, writes to pipes and devices, and replaces files alone."""

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Client
from llm_provider._features.cli.main import main
from llm_provider.simulator import Simulator

Write = Callable[[Client, Any, Path], object]


def _command(name: str, *more: str) -> Write:
    return lambda client, results, path: main([*name.split(), str(path), *more])


WRITERS: dict[str, tuple[Write, bytes]] = {
    "export": (lambda client, results, path: results.export(path), b"PK"),
    "to_jsonl": (lambda client, results, path: results.to_jsonl(path), b"{"),
    "to_html": (lambda client, results, path: results.to_html(path), b"<"),
    "cache.export": (lambda client, results, path: client.cache.export(path), b"{"),
    "llm-provider export": (_command("export", "--model", "gpt-6.1-sol"), b"PK"),
    "llm-provider cache export": (_command("cache export"), b"{"),
}


def _read_pipe(path: Path, write: Callable[[], object]) -> bytes:
    received = bytearray()

    def read() -> None:
        with path.open("rb") as pipe:
            received.extend(pipe.read())

    reader = threading.Thread(target=read)
    reader.start()
    write()
    reader.join()
    return bytes(received)


@pytest.mark.parametrize("kind", ["file", "link", "link to nothing", "pipe", "pipe of a shell", "device"])
@pytest.mark.parametrize("writer", WRITERS)
def test_a_link_is_followed_and_a_pipe_or_device_stays(
    writer: str, kind: str, tmp_path: Path, simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_PROVIDER_CACHE_DIR", str(tmp_path / "cache"))
    write, begin = WRITERS[writer]
    folder = tmp_path / "written"
    folder.mkdir()
    path, target = folder / "out", tmp_path / "target"
    with Client(base_url=simulator.url("openai"), api_key="sk-1", cache_dir=tmp_path / "cache") as client:
        results = client.call_many("gpt-6.1-sol", ["a", "b"], max_tokens=50)

        def work() -> object:
            return write(client, results, path)

        if kind == "pipe":
            os.mkfifo(path)
            written = _read_pipe(path, work)
            assert stat.S_ISFIFO(path.stat().st_mode)
        elif kind == "pipe of a shell":
            reading, writing = os.pipe()
            path.symlink_to(f"/proc/self/fd/{writing}")

            def work_and_close() -> None:
                with os.fdopen(writing, "wb"):
                    work()

            written = _read_pipe(Path(f"/proc/self/fd/{reading}"), work_and_close)
            os.close(reading)
        elif kind == "device":
            if os.geteuid() != 0:
                pytest.skip("only root makes devices")
            # Never the machine's own: an error here would replace it.
            os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
            work()
            assert stat.S_ISCHR(path.stat().st_mode)
            written = begin
        else:
            if kind != "file":
                path.symlink_to(target)
            if kind == "link":
                target.write_bytes(b"before")
            work()
            assert path.is_symlink() == (kind != "file")
            written = (path if kind == "file" else target).read_bytes()
    assert written.startswith(begin)
    has_statement = (
        "export" in writer and "cache" not in writer and kind in ("file", "link", "link to nothing")
    )
    assert [each.name for each in folder.iterdir() if each != path] == ["out.intoto.json"] * has_statement


@pytest.mark.parametrize("writer", [name for name in WRITERS if "llm-provider" not in name])
def test_a_folder_is_an_error_that_names_it(writer: str, tmp_path: Path, simulator: Simulator) -> None:
    write, _ = WRITERS[writer]
    with Client(base_url=simulator.url("openai"), api_key="sk-1", cache_dir=tmp_path / "cache") as client:
        results = client.call_many("gpt-6.1-sol", ["a"], max_tokens=50)
        for path in (tmp_path, Path()):
            with pytest.raises(IsADirectoryError, match="Is a directory"):
                write(client, results, path)
