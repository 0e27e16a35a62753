"""The README on the package index: its links lead to the files of the same version in the repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class ReadmeLinks(MetadataHookInterface):
    """Called by hatchling for each build; an editable install and the source distribution have it too."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set `readme`: the index has the text of README.md, and none of the files beside it."""
        repository, version = metadata["urls"]["Repository"], f"v{metadata['version']}"
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        text = re.sub(r"(!\[[^]]*\]\()(?!https?:)", rf"\1{repository}/raw/{version}/", text)
        text = re.sub(r"\]\((?!https?:|#)", f"]({repository}/blob/{version}/", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
