"""Images: their size out of their first bytes, and their tokens by the providers' rules."""

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider._tokens.images import image_tokens, most_image_tokens, size_of


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + bytes(9)


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height)


def jpeg(width: int, height: int) -> bytes:
    preview = b"\xff\xe1" + struct.pack(">H", 5000) + bytes(4998)
    return b"\xff\xd8" + preview + b"\xff\xc2" + struct.pack(">HBHH", 17, 8, height, width) + bytes(20)


def webp(width: int, height: int) -> bytes:
    return b"RIFF\0\0\0\0WEBPVP8 " + bytes(10) + struct.pack("<HH", width, height)


def webp_lossless(width: int, height: int) -> bytes:
    bits = (width - 1) | (height - 1) << 14
    return b"RIFF\0\0\0\0WEBPVP8L" + bytes(4) + b"\x2f" + bits.to_bytes(4, "little")


def webp_extended(width: int, height: int) -> bytes:
    sizes = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + sizes


def encode(file: bytes) -> str:
    return base64.b64encode(file).decode()


def test_the_size_is_in_the_first_bytes() -> None:
    for image in (png, gif, jpeg, webp, webp_lossless, webp_extended):
        assert size_of(encode(image(640, 400))) == (640, 400), image
    # What is no base64 has the size of a guess.
    assert size_of("no base64 ü") == (1024, 1024)


@given(st.binary(max_size=200), st.sampled_from([b"", b"\x89PNG", b"GIF8", b"\xff\xd8", b"RIFF0000WEBPVP8X"]))
def test_what_is_no_image_has_the_size_of_a_guess(noise: bytes, start: bytes) -> None:
    width, height = size_of(encode(start + noise))
    assert width > 0
    assert height > 0


@pytest.mark.parametrize(
    ("provider", "model", "size", "options", "tokens"),
    [
        # The examples of the providers' own pages.
        ("openai", "gpt-4o", (1024, 1024), {}, 765),
        ("openai", "gpt-4o", (2048, 4096), {}, 1105),
        ("openai", "gpt-4o", (4096, 8192), {"detail": "low"}, 85),
        ("openai", "gpt-4o-mini", (1024, 1024), {}, 2833 + 4 * 5667),
        ("openai", "gpt-5", (1024, 1024), {}, 630),
        ("openai", "o3", (1024, 1024), {}, 675),
        ("openai", "gpt-4.1-mini", (1024, 1024), {}, 1024 * 1.62),
        ("openai", "gpt-6.1-sol", (1024, 1024), {}, 1024),
        ("anthropic", "claude-sonnet-4-5", (200, 200), {}, 64),
        ("anthropic", "claude-sonnet-4-5", (4000, 4000), {}, 1568),
        ("anthropic", "claude-opus-5-5", (4000, 4000), {}, 4784),
        ("gemini", "gemini-2.5-flash", (300, 300), {}, 258),
        ("gemini", "gemini-2.5-flash", (960, 540), {}, 6 * 258),
        ("gemini", "gemini-3.8-flash", (4000, 300), {}, 1120),
        ("gemini", "gemini-3.8-flash", (4000, 300), {"detail": "low"}, 280),
    ],
)
def test_the_published_rules(
    provider: str, model: str, size: tuple[int, int], options: dict[str, str], tokens: float
) -> None:
    estimated = image_tokens(provider, model, encode(png(*size)), **options)
    assert estimated.likely == pytest.approx(tokens)
    assert estimated.low <= estimated.likely <= estimated.high


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini", "together_ai"])
def test_what_is_not_seen_may_be_anything(provider: str) -> None:
    tokens = image_tokens(provider, "some-model", None)
    assert 0 < tokens.low < tokens.likely <= tokens.high


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini"])
@pytest.mark.parametrize("model", ["gpt-4o-mini", "gpt-6.1-sol", "claude-opus-5-5", "gemini-3.8-flash"])
def test_no_image_exceeds_the_bound(provider: str, model: str) -> None:
    most = most_image_tokens(provider, model)
    assert most is not None
    for size in ((64, 64), (1024, 1024), (8000, 8000), (9000, 300)):
        for detail in ("auto", "high", "ultra_high"):
            assert image_tokens(provider, model, encode(png(*size)), detail=detail).high <= most


@pytest.mark.parametrize(("provider", "model"), [("gemini", "gemini-2.5-flash"), ("together_ai", "a-model")])
def test_images_without_a_published_rule_have_no_bound(provider: str, model: str) -> None:
    assert most_image_tokens(provider, model) is None
