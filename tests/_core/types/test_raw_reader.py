"""The reader of raw replies is there in a process that loads nothing but a pickled answer."""

import pickle
import subprocess
import sys

from support import response


def test_a_pickled_answer_reads_its_citations() -> None:
    reply = b'{"content": [{"type": "text", "text": "A", "citations": [{"title": "Zug"}]}]}'
    answer = response("A", provider="anthropic", body=reply)
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).citations[0].title)"
    ended = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(answer), capture_output=True, check=True
    )
    assert ended.stdout.strip() == b"Zug"
