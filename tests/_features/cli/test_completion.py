"""`llm-provider completion`: the scripts of the shells."""

import shutil
import subprocess

import pytest

from support import RunCommand


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(run: RunCommand, shell: str) -> None:
    ended = run("completion", shell)
    assert (ended.code, ended.err) == (0, "")
    assert f"_LLM_PROVIDER_COMPLETE={shell}_complete" in ended.out
    assert "llm-provider" in ended.out


def test_bash_accepts_its_script(run: RunCommand) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash on this machine")
    script = run("completion", "bash").out
    program = f"{script}\ncomplete -p llm-provider"
    completed = subprocess.run([bash, "--norc", "-c", program], capture_output=True, text=True)
    assert (completed.returncode, completed.stderr) == (0, "")
    assert "_llm_provider_completion" in completed.stdout
