"""`llm-provider simulator`: the command that starts the local server."""

import signal

from llm_provider._core.requests.routing import ROUTES
from support import Program, RunScript, errors_of


def test_the_simulator_runs_until_interrupted(program: Program) -> None:
    with program("simulator", "--port", "0") as process:
        assert process.stdout is not None
        assert b"listening at http://127.0.0.1:" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.stdout.read(), errors_of(process)
    assert (process.returncode, err) == (0, "")
    assert b"0 requests" in out
    for route in ROUTES.values():
        variable = route.base_url_variable if route.cloud is None else route.cloud.server_variables[0]
        assert f"export {variable}=".encode() in out or route.adapter == "litellm"


def test_without_its_extra_the_simulator_says_what_to_install(run_script: RunScript) -> None:
    ended = run_script(
        """
        import sys
        sys.modules["granian"] = None  # as if the package were missing
        from llm_provider._features.cli.main import main
        assert main(["simulator", "--port", "0"]) == 1
        """
    )
    assert "pip install 'llm-provider-call[simulator]'" in ended.stderr
    assert ended.stderr.count("\n") == 1
