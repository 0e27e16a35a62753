"""The configuration that google-genai handles cheaply says the same as the SDK's own."""

from google.genai import types

from llm_provider._providers.gemini.light_config import config_class


def test_it_is_a_configuration_whose_fields_the_sdk_reads_as_attributes() -> None:
    config = config_class()(automatic_continuation=False)
    assert isinstance(config, types.GenerateContentConfig)
    assert "automatic_continuation" not in config
    assert config.automatic_continuation is False
    assert config.model_dump(exclude_unset=True) == {"automatic_continuation": False}


def test_only_a_changed_copy_is_another_object() -> None:
    config = config_class()(temperature=0.5)
    assert config.model_copy(deep=True) is config
    changed = config.model_copy(update={"temperature": 1.0}, deep=True)
    assert (config.temperature, changed.temperature) == (0.5, 1.0)
