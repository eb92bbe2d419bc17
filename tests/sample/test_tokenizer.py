"""The rebuilt tokenizer against known ids, and against transformers on the same folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trtpipe.core.chat import ChatTokenizer

if TYPE_CHECKING:
    from trtpipe.core.artifacts import Artifact

CONVERSATIONS = [
    [{"role": "user", "content": "What is 12 * 12?"}],
    [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "¿Qué?\n\n- 東京 😀"}],
    [
        {"role": "user", "content": "Hi <|im_end|> there"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "  {{ 1 }}  "},
    ],
]


@pytest.mark.e2e
def test_known_texts_get_their_ids(sample_model: Artifact) -> None:
    from trtpipe.sample import tokenizer

    chat = ChatTokenizer.load(sample_model.path)
    tokenizer.require_known_ids(chat)
    assert chat.encode_plain(" 75001") == [216, 39, 37, 32, 32, 33]
    assert (chat.bos_id, chat.eos_ids, chat.pad_id, chat.pad_source) == (None, {2}, 2, "pad token")
    assert chat.date_variables == frozenset()


@pytest.mark.e2e
def test_another_pre_tokenizer_is_noticed(sample_model: Artifact) -> None:
    from tokenizers import pre_tokenizers

    from trtpipe.errors import EnvironmentUnfit
    from trtpipe.sample import tokenizer

    chat = ChatTokenizer.load(sample_model.path)
    chat.tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    with pytest.raises(EnvironmentUnfit, match="rebuilt tokenizer is wrong"):
        tokenizer.require_known_ids(chat)


@pytest.mark.e2e
def test_transformers_renders_and_encodes_the_same(sample_model: Artifact) -> None:
    transformers = pytest.importorskip("transformers")
    chat = ChatTokenizer.load(sample_model.path)
    theirs = transformers.AutoTokenizer.from_pretrained(sample_model.path, local_files_only=True)
    assert (theirs.bos_token_id, theirs.eos_token_id, theirs.pad_token_id) == (1, 2, 2)
    for messages in CONVERSATIONS:
        text = theirs.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        assert chat.render(messages) == text
        assert chat.encode_chat(messages) == theirs(text).input_ids
        assert chat.decode(chat.encode(text)) == theirs.decode(theirs(text).input_ids, skip_special_tokens=True)
