"""Messages as input items of the Responses format."""

from conformance.formats import RESPONSES


def test_images_have_a_detail_in_messages_to_responses() -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}}
    own = {"type": "input_image", "image_url": "https://example.com/cat.png"}
    high = {"type": "image_url", "image_url": {"url": "https://example.com/cat.png", "detail": "high"}}
    payload = RESPONSES.encode([{"role": "user", "content": [image, own, high]}])
    assert [entry["detail"] for entry in payload["input"][0]["content"]] == ["auto", "auto", "high"]
    assert not RESPONSES.check(payload)
