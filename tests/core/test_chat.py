"""One path from messages to ids: BOS once, pad and eos by rule, the template as transformers renders it."""

from __future__ import annotations

import datetime
import json
from typing import TYPE_CHECKING, Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from trtpipe.core.chat import ChatError, ChatTokenizer

if TYPE_CHECKING:
    from pathlib import Path

BOS, END, PAD = "<bos>", "<end>", "<pad>"
WORDS = ["user", "assistant", "test", "hello", "2026"]
USER = [{"role": "user", "content": "test"}]
TEMPLATE = (
    "{% for m in messages %}{{ m['role'] }} {{ m['content'] }}" + END + "{% endfor %}"
    "{% if add_generation_prompt %}assistant{% endif %}"
)


def folder_with(
    path: Path,
    *,
    template: Any = TEMPLATE,
    bos_by_tokenizer: bool = False,
    settings: dict[str, Any] | None = None,
    config: dict[str, Any] | None = None,
    generation: dict[str, Any] | None = None,
) -> Path:
    """Write a model folder with a word-level tokenizer: <bos> 0, <end> 1, <pad> 2, then the words."""
    vocabulary = {token: index for index, token in enumerate([BOS, END, PAD, *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=PAD))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens([BOS, END, PAD])
    if bos_by_tokenizer:
        tokenizer.post_processor = processors.TemplateProcessing(single=f"{BOS} $A", special_tokens=[(BOS, 0)])
    path.mkdir(exist_ok=True)
    tokenizer.save(str(path / "tokenizer.json"))
    named = {"bos_token": BOS, "eos_token": END, "chat_template": template, **(settings or {})}
    written = {name: value for name, value in named.items() if value is not None}
    (path / "tokenizer_config.json").write_text(json.dumps(written))
    (path / "config.json").write_text(json.dumps(config or {}))
    if generation is not None:
        (path / "generation_config.json").write_text(json.dumps(generation))
    return path


@pytest.mark.parametrize("template", [TEMPLATE, "{{ bos_token }}" + TEMPLATE], ids=["silent", "writes BOS"])
def test_bos_comes_once_whoever_adds_it(tmp_path: Path, template: str) -> None:
    chat = ChatTokenizer.load(folder_with(tmp_path, template=template, bos_by_tokenizer=True))
    assert chat.encode_chat(USER) == [0, 3, 5, 1, 4]


def test_bos_of_a_template_is_kept_where_the_tokenizer_wants_none(tmp_path: Path) -> None:
    chat = ChatTokenizer.load(folder_with(tmp_path, template="{{ bos_token }}" + TEMPLATE))
    assert chat.bos_id is None
    assert chat.encode_chat(USER)[:2] == [0, 3]
    assert chat.encode_plain("test") == [5]


@pytest.mark.parametrize(("wanted", "ids"), [(True, [0, 5]), (False, [5])])
def test_the_setting_wins_over_the_post_processor(tmp_path: Path, wanted: bool, ids: list[int]) -> None:
    folder = folder_with(tmp_path, bos_by_tokenizer=not wanted, settings={"add_bos_token": wanted})
    assert ChatTokenizer.load(folder).encode_plain("test") == ids


def test_plain_prompts_get_one_bos(tmp_path: Path) -> None:
    chat = ChatTokenizer.load(folder_with(tmp_path, bos_by_tokenizer=True))
    assert chat.encode_plain("test") == [0, 5]
    assert chat.encode_plain(BOS + "test") == [0, 5]
    assert chat.encode("test") == [5]


def test_half_of_a_surrogate_pair_is_no_text(tmp_path: Path) -> None:
    chat = ChatTokenizer.load(folder_with(tmp_path))
    with pytest.raises(ChatError, match="character 4 is half of a surrogate pair"):
        chat.encode_plain("test\ud83d")


def test_pad_falls_back_to_eos_and_says_so(tmp_path: Path) -> None:
    chat = ChatTokenizer.load(folder_with(tmp_path))
    assert (chat.pad_id, chat.pad_source) == (1, "first eos")


def test_pad_token_is_used_where_there_is_one(tmp_path: Path) -> None:
    chat = ChatTokenizer.load(folder_with(tmp_path, settings={"pad_token": {"content": PAD}}))
    assert (chat.pad_id, chat.pad_source) == (2, "pad token")


def test_special_tokens_map_is_read_too(tmp_path: Path) -> None:
    folder = folder_with(tmp_path)
    (folder / "special_tokens_map.json").write_text(json.dumps({"pad_token": PAD}))
    assert ChatTokenizer.load(folder).pad_id == 2


def test_three_eos_ids_are_kept_and_pad_is_one_of_them(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, settings={"eos_token": None}, config={"eos_token_id": [7, 6, 1]})
    chat = ChatTokenizer.load(folder)
    assert chat.eos_ids == {1, 6, 7}
    assert (chat.pad_id, chat.pad_source) == (7, "first eos")


def test_generation_config_wins_and_the_tokenizers_eos_joins(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, config={"eos_token_id": 5}, generation={"eos_token_id": 6})
    assert ChatTokenizer.load(folder).eos_ids == {6, 1}


def test_of_several_the_tokenizers_own_eos_ends_an_answer(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, generation={"eos_token_id": [0, 1, 6]})
    chat = ChatTokenizer.load(folder)
    assert (chat.end_id, chat.eos_ids) == (1, {0, 1, 6})
    nameless = folder_with(tmp_path / "nameless", settings={"eos_token": None}, config={"eos_token_id": [7, 6]})
    assert ChatTokenizer.load(nameless).end_id == 6


def test_neither_pad_nor_eos_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ChatError, match="neither a pad token nor an eos token"):
        ChatTokenizer.load(folder_with(tmp_path, settings={"eos_token": None}))


def test_a_named_token_outside_the_vocabulary_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ChatError, match=r"pad_token is '<fill>'"):
        ChatTokenizer.load(folder_with(tmp_path, settings={"pad_token": "<fill>"}))


def test_chat_without_a_template_is_refused(tmp_path: Path) -> None:
    chat = ChatTokenizer.load(folder_with(tmp_path, template=None))
    assert not chat.has_template
    with pytest.raises(ChatError, match="no chat template"):
        chat.encode_chat(USER)


def test_template_file_wins_over_the_setting(tmp_path: Path) -> None:
    folder = folder_with(tmp_path)
    (folder / "chat_template.jinja").write_text("hello")
    assert ChatTokenizer.load(folder).render(USER) == "hello"


def test_default_of_several_templates_is_used(tmp_path: Path) -> None:
    several = [{"name": "tool_use", "template": "test"}, {"name": "default", "template": "hello"}]
    assert ChatTokenizer.load(folder_with(tmp_path, template=several)).render(USER) == "hello"
    with pytest.raises(ChatError, match="none is called default"):
        ChatTokenizer.load(folder_with(tmp_path, template=several[:1]))


def test_a_template_may_refuse(tmp_path: Path) -> None:
    chat = ChatTokenizer.load(folder_with(tmp_path, template="{{ raise_exception('roles must alternate') }}"))
    with pytest.raises(ChatError, match="roles must alternate"):
        chat.render(USER)


def test_a_template_cannot_change_the_messages(tmp_path: Path) -> None:
    chat = ChatTokenizer.load(folder_with(tmp_path, template="{{ messages.append(1) }}"))
    with pytest.raises(ChatError, match="refuses"):
        chat.render(USER)


def test_a_broken_template_is_named_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(ChatError, match="line 2"):
        ChatTokenizer.load(folder_with(tmp_path, template="hello\n{% endif %}"))


def test_the_date_is_pinned_and_reported(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, template="{{ strftime_now('%d %b %Y') }}")
    assert ChatTokenizer.load(folder, date="2026-07-26").render(USER) == "26 Jul 2026"
    unpinned = ChatTokenizer.load(folder)
    assert unpinned.render(USER).endswith(str(datetime.datetime.now(datetime.UTC).year))
    assert unpinned.date_variables == {"strftime_now"}
    with pytest.raises(ChatError, match="not a day"):
        ChatTokenizer.load(folder, date="26 Jul 2026")


def test_a_date_default_of_the_template_is_reported(tmp_path: Path) -> None:
    template = "{% if not date_string is defined %}{% set date_string = '26 Jul 2024' %}{% endif %}{{ date_string }}"
    chat = ChatTokenizer.load(folder_with(tmp_path, template=template))
    assert chat.date_variables == {"date_string"}
    assert chat.render(USER) == "26 Jul 2024"


def test_tojson_and_loop_controls_and_generation_blocks(tmp_path: Path) -> None:
    template = "{% for m in messages %}{% generation %}{{ m | tojson }}{% endgeneration %}{% break %}{% endfor %}"
    chat = ChatTokenizer.load(folder_with(tmp_path, template=template))
    assert chat.render([{"role": "<ü>"}, {"role": "user"}]) == '{"role": "<ü>"}'


def test_a_saved_cut_is_not_applied(tmp_path: Path) -> None:
    folder = folder_with(tmp_path)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(2)
    tokenizer.enable_padding(length=8)
    tokenizer.save(str(folder / "tokenizer.json"))
    assert ChatTokenizer.load(folder).encode("hello hello hello") == [6, 6, 6]


def test_decoding_leaves_special_tokens_out_unless_asked(tmp_path: Path) -> None:
    chat = ChatTokenizer.load(folder_with(tmp_path))
    assert chat.decode([3, 1]) == "user"
    assert chat.decode([3, 1], skip_special_tokens=False) == "user <end>"


@pytest.mark.parametrize("name", ["tokenizer.json", "config.json"])
def test_damaged_files_are_named(tmp_path: Path, name: str) -> None:
    folder = folder_with(tmp_path)
    (folder / name).write_text("[1")
    with pytest.raises(ChatError, match=name):
        ChatTokenizer.load(folder)


def test_a_folder_without_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ChatError, match="no tokenizer"):
        ChatTokenizer.load(tmp_path)


@pytest.mark.parametrize(
    "template",
    ["{{ 1/0 }}", "{{ 'abc'.index('z') }}", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
     "{% for i in range(10000000) %}{% endfor %}"],
)  # fmt: skip
def test_a_template_that_fails_in_any_way_is_told(tmp_path: Path, template: str) -> None:
    with pytest.raises(ChatError, match="the chat template refuses the messages"):
        ChatTokenizer.load(folder_with(tmp_path, template=template)).encode_chat(USER)


@pytest.mark.parametrize(
    "settings",
    [{"bos_token": ["a"]}, {"eos_token": 3}, {"eos_token": {"a": 1}}, {"chat_template": 5},
     {"chat_template": {"a": "b"}}, {"chat_template": [{"x": 1}]}, {"chat_template": [3]}],
)  # fmt: skip
def test_settings_of_another_form_are_told(tmp_path: Path, settings: dict[str, Any]) -> None:
    with pytest.raises(ChatError, match="has not the form expected"):
        ChatTokenizer.load(folder_with(tmp_path, settings=settings))
