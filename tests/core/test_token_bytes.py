"""The bytes of tokens, for each kind of decoder, against what the tokenizer itself makes of them."""

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

from trtpipe.core.token_bytes import DecoderError, TokenBytes


def tokenizer(pieces, decoder, **options):
    made = Tokenizer(models.BPE(vocab={piece: token for token, piece in enumerate(pieces)}, merges=[], **options))
    made.decoder = decoder
    return made


def test_letters_of_the_byte_alphabet_are_bytes():
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    table = TokenBytes(tokenizer(alphabet, decoders.ByteLevel()))

    assert sorted(table.known) == [bytes([byte]) for byte in range(256)]


def test_a_byte_level_token_with_another_letter_stands_for_itself():
    made = tokenizer(["a"], decoders.ByteLevel())
    made.add_tokens([AddedToken("语 Ġ", normalized=False)])

    assert TokenBytes(made).of(1).decode() == made.decode([1]) == "语 Ġ"


LLAMA = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]


@pytest.mark.parametrize(
    ("decoder", "expected"),
    [
        (decoders.Sequence(LLAMA), [b" What", b"\xe8", b"a"]),
        (decoders.Sequence(LLAMA[:3]), [b" What", b"\xe8", b"a"]),
        (decoders.Metaspace(), [b" What", b"<0xE8>", b"a"]),
        (decoders.Sequence([decoders.Sequence([decoders.Metaspace()])]), [b" What", b"<0xE8>", b"a"]),
    ],
)
def test_sentencepiece_decoders(decoder, expected):
    made = tokenizer(["▁What", "<0xE8>", "a"], decoder)
    table = TokenBytes(made)

    assert table.known == expected
    assert made.decode([2, 0, 2]) == table.text([2, 0, 2])


@pytest.mark.parametrize(
    ("decoder", "words"),
    [
        (None, "missing"),
        (decoders.WordPiece(), "WordPiece"),
        (decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), LLAMA[3]]), "Strip"),
        (decoders.Sequence([decoders.Replace("▁", "_"), decoders.ByteFallback()]), "by '_'"),
        (decoders.Sequence([decoders.Replace(Regex("▁+"), " "), decoders.ByteFallback()]), "replaces"),
    ],
)
def test_an_unknown_decoder_is_refused_by_name(decoder, words):
    made = tokenizer(["a"], decoder) if decoder else Tokenizer(models.BPE(vocab={"a": 0}, merges=[]))

    with pytest.raises(DecoderError, match=words):
        TokenBytes(made)


def test_special_tokens_and_unknown_ids_have_no_text():
    made = tokenizer(["a"], decoders.ByteLevel())
    made.add_special_tokens([AddedToken("<end>", special=True)])
    table = TokenBytes(made)

    assert table.text([0, 1, 2, 99, -1, 0]) == "aa"
    assert table.written_text([0, 1, 2]) == "a<end>"


@pytest.mark.parametrize("text", ["is", " is", "\n", "a語", "▁", "</s>", ", "])
def test_what_is_spelled_reads_the_same_wherever_it_stands(text):
    pieces = [*(f"<0x{byte:02X}>" for byte in range(256)), "▁", "i", "s", "a"]
    made = tokenizer(pieces, decoders.Sequence(LLAMA), byte_fallback=True)
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    made.add_special_tokens([AddedToken("</s>", special=True)])
    table = TokenBytes(made)
    expected = " " if text == "▁" else text  # the mark itself can't be told from a space

    assert table.written_text(table.spell(text)) in {text, expected}
    assert table.spell("</s>") == [260]
    assert table.text(table.respell("</s>")) == "</s>"


def test_a_word_is_spelled_with_the_tokens_that_it_has_within_a_line():
    pieces = ["<0x0A>", "▁", "i", "s", "is", "▁is"]
    made = Tokenizer(
        models.BPE(
            vocab={piece: token for token, piece in enumerate(pieces)},
            merges=[("i", "s"), ("▁", "is")],
            byte_fallback=True,
        )
    )
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    made.decoder = decoders.Sequence(LLAMA)

    assert made.encode("is").tokens == ["▁is"]
    assert TokenBytes(made).spell("is") == [pieces.index("is")]
    assert TokenBytes(made).spell(" is") == [pieces.index("▁is")]
