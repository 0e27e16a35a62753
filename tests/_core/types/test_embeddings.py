"""Vectors."""

import copy
import dataclasses
import pickle
from typing import Any

import pytest

from llm_provider._core.types.embeddings import Embeddings
from llm_provider._core.types.usage import Timing, Usage
from support import RunScript


class TestEmbeddings:
    def embeddings(self, *vectors: list[float], **fields: Any) -> Embeddings:
        defaults: dict[str, Any] = {"usage": Usage(input_tokens=9), "model": "m", "provider": "p"}
        return Embeddings(vectors=vectors, **{**defaults, **fields})

    def test_is_as_long_as_its_vectors_and_holds_them(self) -> None:
        result = self.embeddings([0.6, 0.8], [1.0, 0.0], [0.0, 1.0])
        assert (len(result), result.dimensions) == (3, 2)
        assert list(result) == [[0.6, 0.8], [1.0, 0.0], [0.0, 1.0]]
        assert result[-1] == [0.0, 1.0]
        assert result[:2] == ([0.6, 0.8], [1.0, 0.0])
        with pytest.raises(IndexError):
            _ = result[3]

    def test_numpy(self) -> None:
        array = self.embeddings([0.5, -1.0, 2.0], [0.25, 0.0, 0.0]).numpy()
        assert (array.shape, str(array.dtype)) == ((2, 3), "float32")
        assert array.tolist() == [[0.5, -1.0, 2.0], [0.25, 0.0, 0.0]]

    def test_numpy_is_loaded_where_it_is_wanted_and_its_absence_is_told(self, run_script: RunScript) -> None:
        run_script(
            """
            import sys
            from llm_provider._core.errors import MissingDependencyError
            from llm_provider._core.types.embeddings import Embeddings
            from llm_provider._core.types.usage import Usage

            found = Embeddings(vectors=([1.0],), usage=Usage(), model="m", provider="p")
            assert "numpy" not in sys.modules
            sys.modules["numpy"] = None  # as if it were not installed
            try:
                found.numpy()
            except MissingDependencyError as error:
                assert "pip install numpy" in str(error)
            else:
                raise AssertionError
            """
        )

    def test_shows_its_size_and_cost_and_no_numbers(self) -> None:
        result = self.embeddings(*([0.123] * 1000 for _ in range(50)), cost=0.5)
        assert repr(result) == "Embeddings(50 vectors of 1000 dimensions, model='m', tokens=9, $0.50)"
        assert "1 vector of 1 dimensions" in repr(self.embeddings([1.0]))
        assert "cost unknown" in repr(self.embeddings([1.0]))
        assert "cached" in repr(self.embeddings([1.0], cached=True, cost=0.0))
        html = self.embeddings([0.123], model="<m>")._repr_html_()
        assert "1 vector" in html
        assert "&lt;m&gt;" in html
        assert "0.123" not in html

    def test_is_frozen_and_pickles(self) -> None:
        result = self.embeddings([0.5], cost=0.5, timing=Timing(total=1.0, attempts=1))
        with pytest.raises(dataclasses.FrozenInstanceError):
            result.cost = 0  # type: ignore[misc]  # on purpose
        for back in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
            assert back == result
