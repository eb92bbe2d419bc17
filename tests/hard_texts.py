"""Texts that are hard to cut, and tokenizers trained on them: a byte-level one and one of sentencepiece's kind."""

import json
from collections.abc import Sequence

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

TEXTS = (
    "語言處理と日本語、그리고 한국어. 请用中文回答。",
    "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇩🇪🇯🇵 ☠️ 1️⃣",
    "e\u0301\u0323 n\u0303 Z\u0351\u036b\u0343a\u0332 ก\u0e33 क्षि",
    "שלום עליכם, مرحبًا بالعالم \u202eabc\u202c \u200f1,234",
    "  two  spaces\tand a\r\nline\n\n end ",
    "\ufffd \ufeff \u0000 \u2028 \U0010ffff ﷽",
    "plain words, a stop word; </s> <0x0A> ▁ Ġ <end>",
)
WORD_JOIN = "▁"


def byte_level() -> Tokenizer:
    """Byte-level BPE without words, so that merges cross the borders of characters."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=700, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.add_special_tokens([AddedToken("<end>", special=True)])
    return tokenizer


def sentencepiece() -> Tokenizer:
    """BPE on words with a mark for spaces; half of the letters of the corpus have to be written in bytes."""
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Metaspace(replacement=WORD_JOIN)
    trainer = trainers.BpeTrainer(vocab_size=400, limit_alphabet=80, initial_alphabet=[WORD_JOIN])
    trained.train_from_iterator(corpus(), trainer)
    model = json.loads(trained.to_str())["model"]
    pieces = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), *model["vocab"]]
    vocabulary = {piece: token for token, piece in enumerate(dict.fromkeys(pieces))}
    merges = [tuple(pair) for pair in model["merges"]]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, unk_token="<unk>", byte_fallback=True))  # noqa: S106
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=WORD_JOIN)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace(WORD_JOIN, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens([AddedToken("</s>", special=True)])
    return tokenizer


def corpus() -> list[str]:
    words = [word for text in TEXTS for word in text.split()]
    return [*TEXTS, *words] * 3


def unigram() -> Tokenizer:
    """Unigram pieces with the same mark, and no bytes to fall back on: the decoder is Metaspace alone."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=WORD_JOIN)
    tokenizer.decoder = decoders.Metaspace(replacement=WORD_JOIN)
    trainer = trainers.UnigramTrainer(vocab_size=400, unk_token="<unk>", special_tokens=["<unk>", "</s>"])  # noqa: S106
    tokenizer.train_from_iterator(corpus(), trainer)
    return tokenizer


def reference(tokenizer: Tokenizer, ids: Sequence[int], *, opens_text: bool) -> str:
    """Return what ``tokenizers`` makes of the ids: of themselves, or behind another token, without that token.

    Where bytes are no UTF-8, its ByteFallback drops all of the row they stand in, valid characters too: no stream can
    wait for that. Then the bytes of the row count, read by Python.
    """
    anchor = tokenizer.token_to_id("a")
    behind: str = tokenizer.decode([anchor, *ids])[1:]
    whole: str = tokenizer.decode(list(ids)) if opens_text else behind
    if not isinstance(tokenizer.decoder, decoders.Sequence) or "\ufffd" not in whole:
        return whole
    pieces = [tokenizer.decode([anchor, token])[1:].encode() for token in ids]
    for place, token in enumerate(ids):
        piece = tokenizer.id_to_token(token)
        if piece.startswith("<0x") and len(piece) == len("<0x00>"):
            pieces[place] = bytes.fromhex(piece[3:5])
    text = b"".join(pieces).decode("utf-8", "replace")
    return text.removeprefix(" ") if opens_text else text
