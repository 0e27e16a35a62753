"""The tests mirror the package and `tools` file by file, and a folder's `__init__.py` is only a docstring.

The tests of a module may be golden pairs alone.
"""

import ast
from pathlib import Path

import pytest

from golden import subjects

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "src" / "llm_provider"
TOOLS = TESTS.parent / "tools"

WITHOUT_TESTS = {
    "tools/neighbours.py": "it asks a package index: `make sdk-versions` runs it",
    "tools/sdk_versions.py": "it asks a package index: `make sdk-versions` runs it",
    "_core/formats/sdk_clients.py": "tests/_features/uploads and tests/_core/batches open each client",
    "_core/journey/call.py": "test_stream.py has numbers of samples, test_templates.py the parts of calls",
    "_core/runtime/switches.py": "test_logs.py, test_observer.py and test_settings.py set the variables",
    "_core/runtime/cassette.py": "tests/test_pytest_plugin.py replays cassettes in every way of calling",
    "_features/check/account.py": "test_check.py checks four accounts, tests/recorded plays cases again",
    "_features/check/probes.py": "test_check.py meets every row",
    "_features/check/replies.py": "test_check.py has every deviation of replies",
    "_features/check/traffic.py": "test_check.py looks for private texts",
    "simulator/_behaviour/deviations.py": "tests/_features/check/test_check.py finds each",
    "_features/evidence/rows.py": "test_verification.py exports every kind of result",
    "_features/evidence/export.py": "test_verification.py exports every kind of result",
    "_features/decide/conversation.py": "test_chats.py has conversations as text",
    "_features/decide/decisions.py": "test_operation.py has values, tables and JSON of decisions",
    "_features/decide/gemini.py": "test_operation.py reads the replies of both endpoints",
    "_features/decide/openai.py": "test_operation.py reads the replies of both endpoints",
    "_features/score/scores.py": "test_score.py has values, tables and JSON of scores",
    "_features/score/openai.py": "test_score.py reads the replies of every server",
    "simulator/_addresses.py": "every test finds the simulator by them; test_clouds.py has those of clouds",
    "simulator/_batches/anthropic.py": "tests/_core/batches reads its batches through the SDK",
    "simulator/_batches/exchange.py": "tests/_core/batches reaches every endpoint through the SDKs",
    "simulator/_behaviour/upstreams.py": "tests/_features/quirks/test_routers.py reaches the hosts",
    "simulator/_behaviour/variation.py": "test_recheck.py compares the answers that vary",
    "simulator/_records/ledger.py": "test_wire_format.py has the counts, test_replies.py the bill",
    "simulator/_server/routing.py": "test_wire_format.py plays exchanges on each path",
    "simulator/_server/state.py": "test_wire_format.py plays exchanges with each setting",
    "simulator/_records/books.py": "test_reports.py reads them through the SDK",
    "simulator/_behaviour/toy_model.py": "test_score.py compares every score with it",
    "simulator/_behaviour/score_shapes.py": "test_score.py orders each shape",
    "simulator/formats/scoring.py": "test_score.py reads the replies of every server",
    "_core/pace/state.py": "test_shared_controller.py damages a stored state in every way",
    "_core/runtime/clock.py": "the simulation replaces its clocks, and test_layers.py refuses others",
    "_features/quirks/bills.py": "tests/_core/formats/shared/test_replies.py has what hosts report",
    "_features/quirks/failures.py": "the golden pairs of shared/errors.py and error_bodies have its fields",
    "_core/journey/connections.py": "test_doubts.py, test_sender.py and test_key_pool.py have what it opens",
    "_core/journey/lookup.py": "test_engine.py looks calls up, and tests/_core/store has every mode",
    "_features/fallback/passed_over.py": "tests/_features/fallback/test_fallback.py reads it of every result",
    "__main__.py": "one line, which tests/_features/cli/test_main.py runs as a program",
    "simulator/__main__.py": "one line, which tests/simulator/_server/test_command.py runs as a program",
    "simulator/_batches/gemini.py": "tests/_core/batches reads its batches through the SDK",
    "simulator/_batches/models.py": "test_model_lists.py reads its lists through the SDKs",
    "simulator/_batches/endpoints.py": "tests/_core/batches reaches every endpoint through the SDKs",
    "simulator/formats/anthropic_token_counts.py": "test_wire_format.py plays its golden exchange",
    "simulator/formats/anthropic.py": "test_wire_format.py plays its golden exchanges",
    "simulator/formats/openai_chat.py": "test_wire_format.py plays its golden exchanges",
    "simulator/formats/gemini.py": "test_wire_format.py plays its golden exchanges",
    "simulator/formats/gemini_token_counts.py": "models/test_token_count.py asks for counts",
    "simulator/formats/openai_responses.py": "test_wire_format.py plays its golden exchanges",
    "_core/requests/checks.py": "the golden pairs of wrong calls have the message of each",
    "_features/clouds/addresses.py": "tests/end_to_end/test_clouds.py sends to each address",
    "_features/clouds/routes.py": "tests/end_to_end/test_clouds.py calls a model of each row",
    "_core/requests/route.py": "test_routing.py checks every row",
    "_features/clouds/identities.py": "tests/end_to_end/test_clouds.py has every chain",
    "_features/clouds/authorization.py": "tests/end_to_end/test_clouds.py has refused tokens",
    "simulator/formats/cloud_anthropic.py": "tests/end_to_end/test_clouds.py calls Claude at both",
    "simulator/formats/aws_frames.py": "tests/_features/clouds/test_anthropic.py reads its frames",
    "tools/prices/quotes.py": "the golden pairs of refresh.py and merge.py have quotes of sources",
    "tools/components.py": "test_results_page.py compares the files with their digests",
    "tools/layers.py": "test_layers.py compares every import with it",
    "tools/size.py": "it prints counts that no test can know",
    "tools/peer_costs.py": "tests/end_to_end/test_peer_costs.py reads what it has written",
    "tools/readme_links.py": "test_packaging.py reads the links that the index gets",
    "tools/chroot.py": "it needs root and a mirror of Debian; `make test-matrix` runs it",
}
"""Module → the reason why it has no test file of its own."""

OF_NO_MODULE = {
    "_core/formats/transport/test_repeated_requests.py": "later requests of http_client.py",
    "_core/journey/test_doubts.py": "outages that connections.py doubts",
    "_core/journey/test_attempt.py": "single requests of sender.py, and steps of stream.py",
    "_core/journey/test_repair.py": "answers that do not match, which engine.py asks for again",
    "_core/journey/test_several_parts.py": "calls of several parts, which engine.py asks for",
    "_core/journey/test_loop_state.py": "what engine.py keeps for a loop, and leaves behind",
    "_core/journey/test_continued.py": "answers of several requests, which engine.py joins",
    "_core/journey/test_paused.py": "paused turns, as the module above",
    "_core/journey/test_nothing_left.py": "what journey/ and batches/ leave of calls that have ended",
    "_core/journey/test_waits_kept.py": "the waits of sender.py, free_requests.py and batches/remote.py",
    "_core/journey/test_embed_media.py": "images in embed.py, at each host that takes them",
    "_core/journey/test_max_age.py": "ages of answers, which lookup.py judges where an entry is decoded",
    "_core/batches/test_max_errors.py": "the end that sent_requests.py gives to a batch",
    "_core/store/test_sharing.py": "the directories of a group, of each way to open a cache in one",
    "_core/batches/test_foreign_lines.py": "results with lines of a proxy, and batches with wrong lines",
    "test_layers.py": "the imports of all modules",
    "test_public_api.py": "__init__.py, which has every public name",
    "test_prose.py": "the sentences of all modules and pages",
    "test_tree.py": "the files of all modules",
    "_core/formats/test_golden.py": "all modules that have golden pairs",
    "_core/formats/transport/test_private_entries.py": "the private names of SDKs in all modules",
    "_core/requests/test_adding_a_host.py": "all modules that a new host must not touch",
    "_core/requests/test_refusals.py": "the modules that refuse what a provider does not take",
}
"""Test file → its subject, which is not one private module."""

NOT_MIRRORED = {
    "benchmarks", "browser", "cluster", "conformance", "end_to_end", "fuzz", "integration", "recorded",
    "simulation", "typing", "witnesses",
}  # fmt: skip
"""Folders of tests that have no folder in the package."""

PUBLIC_PACKAGES = {"__init__.py", "simulator/__init__.py"}
"""The packages that users import from."""

FILES = {path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("*.py")} | {
    path.relative_to(TOOLS.parent).as_posix(): path for path in TOOLS.rglob("*.py")
}
FOLDERS = {name for name in FILES if Path(name).name == "__init__.py"}
MODULES = FILES.keys() - FOLDERS
TEST_FILES = {
    path.relative_to(TESTS).as_posix()
    for path in TESTS.rglob("test_*.py")
    if path.relative_to(TESTS).parts[0] not in NOT_MIRRORED
}


def mirrored(module: str) -> str:
    """Where the tests of a module are: in the same folder, without the underscores of the module's name."""
    path = Path(module)
    return (path.parent / f"test_{path.stem.strip('_')}.py").as_posix()


def test_every_module_has_its_test_file() -> None:
    missing = {module for module in MODULES if mirrored(module) not in TEST_FILES}
    own = {subject for subject in subjects() if subject.startswith(("_", "tools/"))}
    paired = {f"{name}.py" for name in own} | {f"_core/formats/{name}.py" for name in {*subjects()} - own}
    assert missing - paired == set(WITHOUT_TESTS)


def test_every_test_file_has_its_module() -> None:
    assert TEST_FILES - {mirrored(module) for module in MODULES} == set(OF_NO_MODULE)


def test_no_two_modules_share_a_test_file() -> None:
    assert len({mirrored(module) for module in MODULES}) == len(MODULES)


@pytest.mark.parametrize("folder", sorted(FOLDERS - PUBLIC_PACKAGES))
def test_a_folder_has_a_docstring_and_no_code(folder: str) -> None:
    tree = ast.parse(FILES[folder].read_text(encoding="utf-8"))
    assert ast.get_docstring(tree)
    assert len(tree.body) == 1
