"""The vocabularies of models, and how many tokens each makes of words, signs and scripts.

The weights are a least-squares fit of relative errors, without negative weights, to the counts of each
tokenizer for 7,700 pieces of text: code, documentation, licences, manual pages and translations of other
packages in 41 languages, and made-up numbers, tables, logs, JSON, addresses, random letters and emoji. No
text of this repository is among them, except the first paragraphs of tests/data/scripts.json. A weight of a
script is per character; "runs" are characters of a script without another between them.
"""

from __future__ import annotations

import re

VOCABULARIES = ("o200k_base", "cl100k_base", "gemma", "tekken", "deepseek", "qwen", "llama", "qwen_3")
"""OpenAI's two encodings; those of Gemma 3, Mistral (Tekken), DeepSeek V4, Qwen 3.6, Llama 3 and Qwen 3,
whose weights of languages were fitted to 6,000 pieces of translations in 90 languages."""

ENCODINGS = VOCABULARIES[:2]
"""Those that tiktoken has."""

# The vocabularies in the order of the columns below.
_WEIGHTS = {
    "words": (1.02, 1.04, 1.02, 1.02, 1.03, 1.01, 1.02, 1.01),
    "long words": (0.08, 0.07, 0.04, 0.11, 0.10, 0.06, 0.08, 0.06),
    "very long words": (0.30, 0.31, 0.37, 0.29, 0.35, 0.35, 0.31, 0.35),
    "capitals": (0.23, 0.22, 0.23, 0.35, 0.30, 0.21, 0.22, 0.21),
    "hexadecimal": (0.62, 0.62, 0.90, 0.91, 0.62, 0.89, 0.62, 0.89),
    "random letters": (0.70, 0.74, 0.72, 0.78, 0.72, 0.75, 0.74, 0.75),
    "digits": (0.05, 0.05, 1.01, 0.97, 0.01, 0.99, 0.04, 0.99),
    "digit groups": (0.86, 0.84, 0.00, 0.15, 0.99, 0.00, 0.88, 0.00),
    "numbers": (0.26, 0.27, 0.00, 0.13, 0.19, 0.13, 0.25, 0.13),
    "numbers after spaces": (0.80, 0.81, 0.97, 0.76, 0.77, 0.96, 0.81, 0.96),
    "signs": (0.81, 0.80, 0.99, 0.82, 0.87, 0.84, 0.81, 0.84),
    "further signs": (0.08, 0.07, 0.03, 0.13, 0.10, 0.07, 0.06, 0.07),
    "signs before words": (0.00, 0.00, 0.05, 0.00, 0.00, 0.00, 0.00, 0.00),
    "lines": (0.37, 0.36, 0.95, 0.46, 0.41, 0.99, 0.37, 0.99),
    "indents": (0.97, 0.98, 1.06, 0.93, 0.98, 1.00, 0.98, 1.00),
    "arabic": (0.14, 0.48, 0.36, 0.15, 0.38, 0.10, 0.45, 0.38),
    "arabic runs": (0.96, 1.69, 0.09, 0.87, 0.27, 1.11, 0.00, 0.21),
    "bengali": (0.35, 1.23, 0.09, 0.44, 0.32, 0.51, 1.25, 1.06),
    "bengali runs": (0.40, 1.23, 1.06, 0.66, 0.84, 0.37, 1.07, 0.92),
    "caucasian": (0.17, 1.93, 0.00, 0.48, 0.74, 0.00, 2.00, 1.05),
    "caucasian runs": (1.31, 1.34, 3.26, 0.00, 0.00, 4.52, 0.00, 0.56),
    "chinese": (0.73, 1.08, 0.59, 0.93, 0.54, 0.51, 0.79, 0.51),
    "chinese runs": (0.36, 0.30, 0.32, 0.57, 0.78, 0.62, 0.15, 0.62),
    "cyrillic": (0.22, 0.44, 0.10, 0.25, 0.40, 0.20, 0.00, 0.47),
    "cyrillic runs": (0.90, 1.08, 1.37, 0.78, 0.32, 1.05, 2.15, 0.32),
    "devanagari": (0.39, 1.14, 0.27, 0.47, 0.70, 0.53, 0.65, 0.98),
    "devanagari runs": (0.00, 0.44, 0.17, 0.00, 0.00, 0.00, 0.00, 0.69),
    "eastern": (0.00, 0.53, 0.00, 0.00, 0.19, 0.00, 0.00, 0.00),
    "eastern runs": (0.46, 1.60, 0.00, 0.09, 0.67, 0.00, 0.00, 3.80),
    "emoji": (1.76, 2.81, 0.80, 3.19, 1.46, 2.70, 2.77, 0.55),
    "emoji runs": (0.54, 0.00, 1.39, 0.00, 0.84, 0.00, 0.00, 2.11),
    "flag": (1.71, 2.66, 0.67, 5.76, 2.09, 2.78, 2.79, 0.57),
    "flag runs": (0.17, 0.90, 0.28, 0.21, 0.00, 0.71, 0.99, 0.07),
    "greek": (0.19, 1.05, 0.20, 0.26, 0.43, 0.16, 0.24, 1.03),
    "greek runs": (1.17, 0.00, 1.13, 0.91, 0.53, 1.35, 1.04, 0.00),
    "hangul": (0.27, 0.82, 0.20, 0.47, 0.42, 0.14, 0.35, 0.41),
    "hangul runs": (1.30, 1.05, 1.34, 0.60, 1.17, 1.36, 1.16, 1.16),
    "hebrew": (0.34, 0.93, 0.44, 0.41, 0.49, 0.35, 0.93, 0.32),
    "hebrew runs": (0.49, 1.09, 0.43, 0.49, 0.28, 0.98, 1.09, 0.63),
    "indic": (0.28, 1.62, 0.27, 0.36, 0.69, 0.55, 1.59, 1.08),
    "indic runs": (1.13, 2.31, 0.93, 1.27, 1.19, 0.76, 2.47, 3.28),
    "joiner": (0.00, 0.00, 0.00, 2.46, 2.34, 1.13, 0.00, 1.81),
    "kana": (0.47, 0.77, 0.23, 0.55, 0.57, 0.34, 0.45, 0.52),
    "kana runs": (0.87, 0.97, 0.67, 0.00, 0.00, 0.04, 0.80, 0.00),
    "other": (2.48, 1.96, 1.23, 2.17, 1.77, 2.44, 2.46, 1.50),
    "other runs": (2.48, 1.96, 1.23, 2.17, 1.77, 2.44, 2.46, 0.00),
    "punctuation": (0.59, 0.63, 1.11, 0.90, 0.59, 0.26, 0.70, 0.00),
    "punctuation runs": (0.36, 0.00, 0.00, 0.00, 0.41, 0.89, 0.00, 1.95),
    "russian": (0.03, 0.00, 0.05, 0.07, 0.00, 0.07, 0.10, 0.10),
    "russian runs": (1.48, 2.98, 1.30, 1.53, 1.99, 1.24, 1.38, 1.49),
    "southeast": (0.57, 1.88, 0.42, 0.00, 0.59, 0.14, 1.87, 1.36),
    "southeast runs": (0.51, 0.00, 1.01, 10.60, 6.02, 7.80, 0.00, 0.00),
    "symbol": (0.05, 0.00, 0.45, 0.00, 0.68, 0.00, 0.00, 0.00),
    "symbol runs": (1.81, 2.79, 0.00, 3.13, 0.00, 1.79, 2.51, 0.00),
    "tamil": (0.27, 1.25, 0.00, 0.28, 0.29, 0.43, 1.25, 1.11),
    "tamil runs": (0.85, 2.41, 2.13, 1.27, 2.32, 0.51, 2.41, 1.05),
    "thai": (0.41, 0.93, 0.29, 0.53, 0.36, 0.24, 0.48, 0.53),
    "thai runs": (0.00, 0.00, 0.48, 0.00, 0.28, 0.00, 0.47, 1.17),
    "vietnamese_letter": (0.00, 0.05, 0.00, 0.00, 0.05, 0.00, 0.00, 4.43),
    "vietnamese_letter runs": (0.00, 0.05, 0.00, 0.00, 0.05, 0.00, 0.00, 0.00),
    "western": (1.84, 3.00, 2.06, 2.16, 2.50, 2.02, 2.84, 2.98),
    "wide_sign": (0.15, 0.39, 0.11, 0.24, 0.58, 0.90, 0.28, 0.00),
    "wide_sign runs": (0.52, 0.00, 0.81, 0.62, 0.00, 0.00, 0.30, 0.00),
    "czech letters": (0.37, 0.48, 0.34, 0.38, 0.40, 0.36, 0.36, 0.46),
    "danish letters": (0.21, 0.26, 0.20, 0.23, 0.25, 0.21, 0.26, 0.28),
    "danish words": (0.42, 0.43, 0.51, 0.48, 0.49, 0.48, 0.43, 0.27),
    "dutch letters": (0.15, 0.25, 0.18, 0.21, 0.22, 0.18, 0.25, 0.26),
    "dutch words": (0.48, 0.38, 0.48, 0.42, 0.42, 0.45, 0.38, 0.30),
    "finnish letters": (0.31, 0.39, 0.29, 0.35, 0.35, 0.30, 0.39, 0.42),
    "finnish words": (0.15, 0.30, 0.40, 0.12, 0.37, 0.33, 0.30, 0.00),
    "french letters": (0.01, 0.09, 0.02, 0.06, 0.05, 0.02, 0.09, 0.11),
    "french words": (1.15, 0.97, 1.10, 0.90, 1.10, 1.11, 0.95, 0.79),
    "german letters": (0.07, 0.16, 0.05, 0.14, 0.15, 0.11, 0.16, 0.17),
    "german words": (0.99, 0.78, 1.07, 0.70, 0.79, 0.78, 0.78, 0.64),
    "hungarian letters": (0.32, 0.43, 0.27, 0.30, 0.37, 0.30, 0.42, 0.44),
    "hungarian words": (0.34, 0.17, 0.42, 0.30, 0.26, 0.30, 0.21, 0.00),
    "indonesian letters": (0.06, 0.15, 0.13, 0.05, 0.11, 0.11, 0.15, 0.16),
    "indonesian words": (1.02, 0.86, 0.54, 1.29, 0.91, 0.61, 0.84, 0.81),
    "italian letters": (0.00, 0.01, 0.01, 0.02, 0.02, 0.00, 0.01, 0.21),
    "italian words": (1.43, 1.54, 1.24, 1.35, 1.44, 1.31, 1.53, 0.44),
    "polish letters": (0.25, 0.35, 0.19, 0.21, 0.27, 0.19, 0.35, 0.37),
    "polish words": (0.63, 0.36, 0.79, 0.88, 0.59, 0.79, 0.34, 0.00),
    "portuguese letters": (0.05, 0.07, 0.05, 0.09, 0.07, 0.05, 0.06, 0.19),
    "portuguese words": (1.00, 1.12, 0.96, 0.86, 1.10, 1.01, 1.14, 0.47),
    "romanian letters": (0.18, 0.23, 0.15, 0.18, 0.23, 0.15, 0.23, 0.33),
    "romanian words": (0.68, 0.66, 0.77, 0.74, 0.69, 0.76, 0.66, 0.11),
    "spanish letters": (0.00, 0.00, 0.00, 0.05, 0.00, 0.00, 0.00, 0.13),
    "spanish words": (1.24, 1.47, 1.20, 1.04, 1.46, 1.26, 1.46, 0.68),
    "swedish letters": (0.18, 0.26, 0.18, 0.22, 0.24, 0.21, 0.25, 0.27),
    "swedish words": (0.59, 0.46, 0.63, 0.53, 0.50, 0.50, 0.46, 0.39),
    "turkish letters": (0.26, 0.42, 0.21, 0.31, 0.45, 0.26, 0.28, 0.31),
    "turkish words": (0.31, 0.00, 0.50, 0.19, 0.00, 0.34, 0.18, 0.23),
    "vietnamese letters": (0.00, 0.00, 0.00, 0.00, 0.00, 0.01, 0.00, 0.09),
    "vietnamese words": (1.18, 1.99, 1.08, 1.18, 1.73, 1.02, 1.11, 0.84),
}

WEIGHTS = {
    vocabulary: {name: weights[column] for name, weights in _WEIGHTS.items()}
    for column, vocabulary in enumerate(VOCABULARIES)
}
"""Tokens per count of `text.counts`, by vocabulary."""

_OLD_OPENAI = re.compile(r"(openai/|ft:)*(gpt-3\.5|gpt-35|gpt-4(-|$)|text-|davinci|babbage|curie|ada)")
_LIKE = tuple(
    (re.compile(pattern), vocabulary)
    for pattern, vocabulary in (
        (r"(.*/)?gpt-oss", "o200k_base"),
        (r"(.*/)?(gemini|gemma|learnlm)", "gemma"),
        (r"(.*/)?(open-)?(mistral|mixtral|ministral|codestral|devstral|magistral|pixtral|voxtral)", "tekken"),
        (r"(.*/)?(deepseek-r1-distill-qwen|qwen-?([12]|3(?!\.[5-9]))|qwq|qvq)", "qwen_3"),
        (r"(.*/)?qwen", "qwen"),
        (r"(.*/)?(deepseek-r1-distill-|meta-)?llama-?[3-9]", "llama"),
        (r"(.*/)?deepseek(?!-r1-distill)", "deepseek"),
    )
)
_OF_PROVIDER = {"gemini": "gemma", "mistral": "tekken", "deepseek": "deepseek"}


def vocabulary_of(provider: str, model: str) -> str | None:
    """The vocabulary of a model, or one like it; None if none is known.

    tiktoken names `o200k_base` for all of OpenAI's chat models from gpt-4o to gpt-5, and none newer, so later
    models are assumed to share it. Google does not publish Gemini's vocabulary; Gemma is its open relative.
    Anthropic publishes none.

    >>> vocabulary_of("openai", "gpt-6.1-sol"), vocabulary_of("groq", "openai/gpt-oss-120b")
    ('o200k_base', 'o200k_base')
    >>> vocabulary_of("openai", "gpt-4-0613"), vocabulary_of("anthropic", "claude-sonnet-5-5")
    ('cl100k_base', None)
    """
    name = model.lower()
    if provider == "openai" or name.startswith("openai/"):
        return "cl100k_base" if _OLD_OPENAI.match(name) else "o200k_base"
    return next((like for pattern, like in _LIKE if pattern.match(name)), _OF_PROVIDER.get(provider))


STOP_WORDS = {
    "english": (
        "all an and are as at be but by can for from has have if in is it not of on or that the "
        "this to use was we which will with you your"
    ),
    "german": (
        "der die das und ist nicht ein eine den dem des zu mit auf für von sich im werden wird "
        "auch es sie oder wenn kann"
    ),
    "french": (
        "le la les et est une des du pour dans que qui pas sur vous au avec ce par sont plus "
        "être ou cette son nous"
    ),
    "spanish": (
        "el la los las que es una para con del por no se su como más este esta lo puede al son pero sus si"
    ),
    "portuguese": (
        "o os as que é uma para com do da não em no na por se um ao mais dos das como ser pode seu"
    ),
    "italian": (
        "il di che è la per un una non del della con sono gli le più si da nel alla questo "
        "essere può dei anche"
    ),
    "dutch": (
        "de het een en van is dat niet op te voor met zijn aan wordt ook door bij of kan worden "
        "als naar deze er"
    ),
    "swedish": "och att det som en är på för av inte med den till ett kan om du har eller från detta",
    "danish": "og at det som en er på for af ikke med den til et kan om du har eller fra der de skal",
    "polish": (
        "w i na nie się z do jest to że jak dla od po przez być lub oraz są może który przy o tym aby"
    ),
    "czech": ("a je na se v že pro to s do jako nebo není jsou být z k by které ale který lze pokud tak o"),
    "turkish": (
        "ve bir bu için ile da de olarak daha olan değil ne çok gibi kadar her var sonra veya ya en ise"
    ),
    "indonesian": (
        "yang dan di ini untuk dengan dari tidak pada dalam akan adalah anda atau ke itu dapat "
        "oleh juga bisa sebagai ada jika"
    ),
    "vietnamese": (
        "và là của có được cho không trong một các này với để những khi từ đã người về như thể "
        "hoặc bạn đến phải"
    ),
    "romanian": (
        "și de în la cu nu este pe o un care să din pentru sau mai ca fi dacă sunt acest această se prin al"
    ),
    "hungarian": (
        "a az és nem hogy is egy van ez meg csak de vagy ha kell lehet ki be mint után több fel még el"
    ),
    "finnish": (
        "ja on ei että se tai kun ovat myös voi mutta sen jos ole tämä joka kuin oli niin hän "
        "vain sekä tässä mitä"
    ),
}
"""Frequent words of languages that are written in Latin letters."""
