"""The modules of the served models, laid side by side as in a release, and two tokenizers of the common kinds."""

import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from trtpipe.triton_repo import repository


@pytest.fixture(scope="session", autouse=True)
def _served_modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("served")
    for model in repository.SHARED:
        for module in repository.modules(model):
            shutil.copy(module, folder)
    sys.path.insert(0, str(folder))
    yield
    sys.path.remove(str(folder))


@dataclass
class PlainTokenizer:
    """What the served modules use of a ChatTokenizer."""

    tokenizer: Tokenizer
    has_template: bool = False

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def encode_plain(self, text: str) -> list[int]:
        return self.encode(text)

    def encode_chat(self, messages: list[dict[str, str]]) -> list[int]:
        return self.encode("".join(f"<{message['role']}>{message['content']}" for message in messages))

    def decode(self, ids: list[int]) -> str:
        return self.tokenizer.decode(ids)


@pytest.fixture(scope="session")
def byte_level() -> PlainTokenizer:
    """A token for each byte, as byte-level BPE has them at the bottom; the last id is the special token <end>."""
    vocabulary = {letter: index for index, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<end>", special=True)])
    return PlainTokenizer(tokenizer)


@pytest.fixture(scope="session")
def sentencepiece() -> PlainTokenizer:
    """Words that carry their leading space, and bytes for all else, as Llama 2 has them."""
    words = ["a", "▁What", "▁is", "▁ML", "0"]
    vocabulary = {token: index for index, token in enumerate([*(f"<0x{byte:02X}>" for byte in range(256)), *words])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], byte_fallback=True))
    tokenizer.add_special_tokens([AddedToken("</s>", special=True)])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return PlainTokenizer(tokenizer)


@pytest.fixture(scope="session")
def unigram() -> PlainTokenizer:
    """Pieces without bytes to fall back on, as older sentencepiece models have them."""
    pieces = ["<unk>", "▁", "W", "h", "a", "t", "▁What"]
    tokenizer = Tokenizer(models.Unigram([(piece, -float(place)) for place, piece in enumerate(pieces)], unk_id=0))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return PlainTokenizer(tokenizer)
