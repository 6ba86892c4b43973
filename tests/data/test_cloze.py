"""RocStories: every story of the file is read, and rows are what the published example makes of them."""

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytorch_transformers import OpenAIGPTTokenizer
from pytorch_transformers.data.cloze import TASK_TOKENS, ClozeExample, add_task_tokens, encode_cloze, read_cloze
from shared_data import shared

HEADER = ["InputStoryid", *(f"InputSentence{number}" for number in range(1, 5))]
HEADER += ["RandomFifthSentenceQuiz1", "RandomFifthSentenceQuiz2", "AnswerRightEnding"]
ROW = ["id", "One.", 'Two, "so".', "Three\nlines.", "", "An end.", "Another.", "2"]
TEXTS = st.text("ab é,_中\n\x00\u2028", max_size=12) | st.sampled_from([*TASK_TOKENS, "a _classify_ b"])


def gpt_tokenizer() -> OpenAIGPTTokenizer:
    """Letters, and two merges."""
    letters = "abcdefghijklmnopqrstuvwxyz_.,"
    vocab = ["<unk>", *letters, *(f"{letter}</w>" for letter in letters), "ab", "ab</w>"]
    merges = ["a b", "a b</w>"]
    return OpenAIGPTTokenizer({token: number for number, token in enumerate(vocab)}, merges, use_spacy=False)


@pytest.fixture(scope="module")
def tokenizer() -> OpenAIGPTTokenizer:
    tokenizer = gpt_tokenizer()
    add_task_tokens(tokenizer)
    return tokenizer


def write(path: Path, *rows: list[str]) -> Path:
    with path.open("w", encoding="utf-8-sig", newline="") as stream:
        csv.writer(stream).writerows(rows)
    return path


def test_the_shared_file_has_the_stories_that_its_readme_counts() -> None:
    examples = read_cloze(shared("data", "rocstories", "cloze_test_val_sample.csv"))
    assert len(examples) == 70
    assert {example.label for example in examples} == {0, 1}
    assert examples[0].story.startswith("Rick grew up in a troubled household. He never found good support in family,")
    assert examples[0].endings == ("He is happy now.", "He joined a gang.")
    assert [example.label for example in examples[:3]] == [0, 0, 1]


@pytest.mark.parametrize(
    "header",
    [
        HEADER,
        [name.lower() for name in HEADER],
        [
            "story_id",
            *(f"input_sentence_{n}" for n in range(1, 5)),
            "sentence_quiz1",
            "sentence_quiz2",
            "answer_right_ending",
        ],
    ],
)
def test_columns_are_found_by_their_names(tmp_path: Path, header: list[str]) -> None:
    expected = ClozeExample("id", 'One. Two, "so". Three\nlines. ', ("An end.", "Another."), 1)
    assert read_cloze(write(tmp_path / "val.csv", header, ROW)) == [expected]
    assert read_cloze(write(tmp_path / "turned.csv", ["more", *header[::-1]], ["x", *ROW[::-1]])) == [expected]


def test_the_file_for_a_test_has_no_answers(tmp_path: Path, tokenizer: OpenAIGPTTokenizer) -> None:
    (example,) = read_cloze(write(tmp_path / "test.csv", HEADER[:-1], ROW[:-1]))
    assert example.label is None
    assert encode_cloze([example], tokenizer, 64)[0].keys() == {"input_ids", "mc_token_ids"}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([HEADER, ROW, [*ROW[:-1], "0"]], r":4: AnswerRightEnding is '0'.*one of 1, 2"),
        ([HEADER, ROW[1:]], r":2: 7 columns, 8 columns expected"),
        ([["storyid", "storytitle", "sentence1"], ["a", "b", "c"]], r":1: .*'InputSentence1'"),
        ([HEADER], "no row below the header"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, rows: list[list[str]], message: str) -> None:
    path = write(tmp_path / "bad.csv", *rows)
    with pytest.raises(ValueError, match=message) as error:
        read_cloze(path)
    assert str(error.value).startswith(str(path))


def test_task_tokens_stand_behind_the_vocabulary_and_are_added_once(tmp_path: Path) -> None:
    tokenizer = gpt_tokenizer()
    size = tokenizer.vocab_size
    assert add_task_tokens(tokenizer) == 3
    assert tokenizer.convert_tokens_to_ids(list(TASK_TOKENS)) == [size, size + 1, size + 2]
    assert add_task_tokens(tokenizer) == 3
    tokenizer.save_pretrained(tmp_path)
    saved = OpenAIGPTTokenizer.from_pretrained(tmp_path)
    assert add_task_tokens(saved) == 3
    assert saved.special_tokens == tokenizer.special_tokens


def test_tokens_that_are_there_keep_their_ids() -> None:
    tokenizer = gpt_tokenizer()
    tokenizer.set_special_tokens(["_mine_", "_classify_"])
    before = tokenizer.special_tokens
    assert add_task_tokens(tokenizer) == 4
    assert {token: tokenizer.special_tokens[token] for token in before} == before
    assert set(tokenizer.special_tokens) == {"_mine_", *TASK_TOKENS}


@given(story=TEXTS, endings=st.tuples(TEXTS, TEXTS), positions=st.integers(6, 40), label=st.sampled_from([0, 1]))
def test_rows_are_those_of_the_published_example(
    tokenizer: OpenAIGPTTokenizer, story: str, endings: tuple[str, str], positions: int, label: int
) -> None:
    start, delimiter, classify = tokenizer.convert_tokens_to_ids(list(TASK_TOKENS))
    plain = gpt_tokenizer()  # does not know the task tokens, so in a text they are words as any others
    cap = positions // 2 - 2
    expected = [
        [start, *plain.encode(story)[:cap], delimiter, *plain.encode(ending)[:cap], classify] for ending in endings
    ]
    (row,) = encode_cloze([ClozeExample("", story, endings, label)], tokenizer, positions)
    assert row["input_ids"] == expected == row["lm_labels"]
    assert max(map(len, expected)) <= positions
    assert [ids[place] for ids, place in zip(row["input_ids"], row["mc_token_ids"], strict=True)] == [classify] * 2
    assert all(ids.count(classify) == ids.count(delimiter) == ids.count(start) == 1 for ids in expected)
    assert row["mc_labels"] == label


def test_what_cannot_be_encoded_is_refused(tokenizer: OpenAIGPTTokenizer) -> None:
    example = ClozeExample("", "a", ("b", "c"), 0)
    with pytest.raises(ValueError, match=r"n_positions=5 .* 6 or more"):
        encode_cloze([example], tokenizer, 5)
    with pytest.raises(ValueError, match=r"no _start_, _delimiter_, _classify_; call add_task_tokens"):
        encode_cloze([example], gpt_tokenizer(), 64)
    assert encode_cloze([], tokenizer, 64) == []


def test_rows_train_the_model(tokenizer: OpenAIGPTTokenizer) -> None:
    """Padding is in no loss, and the names are those of the model's arguments."""
    import torch

    from pytorch_transformers import OpenAIGPTConfig, OpenAIGPTDoubleHeadsModel
    from pytorch_transformers.data.batches import collate

    torch.manual_seed(0)
    config = OpenAIGPTConfig(tokenizer.vocab_size, n_special=3, n_positions=32, n_embd=8, n_layer=1, n_head=2)
    model = OpenAIGPTDoubleHeadsModel(config).eval()
    stories = [ClozeExample("", "ab ab a", ("b", "c ab c ab"), 0), ClozeExample("", "a", ("c", "ab"), 1)]
    rows = encode_cloze(stories, tokenizer, 32)
    both = model(**collate(rows))
    alone = [model(**collate([row])) for row in rows]
    assert torch.allclose(both.mc_logits, torch.cat([output.mc_logits for output in alone]), atol=1e-6)
    counts = torch.tensor([sum(len(ids) - 1 for ids in row["input_ids"]) for row in rows], dtype=torch.float32)
    mean = (torch.stack([output.lm_loss for output in alone]) * counts).sum() / counts.sum()
    assert torch.allclose(both.lm_loss, mean, atol=1e-6)
