"""Windows, rows and batches: nothing is lost or reordered, limits hold, and the original's rules are kept."""

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytorch_transformers import FeatureExtractor
from pytorch_transformers.data.rows import Row, batches_of, rows_of, windows_of

TEXTS = st.lists(st.one_of(st.text(max_size=9), st.tuples(st.text(max_size=4), st.text(max_size=4))))
LENGTHS = st.lists(st.integers(min_value=2, max_value=30), max_size=40)


@given(texts=TEXTS, most=st.integers(1, 5), characters=st.integers(1, 20))
def test_windows_keep_every_text_in_order(texts: list[str | tuple[str, str]], most: int, characters: int) -> None:
    windows = list(windows_of(texts, most, characters))
    assert [text for window, _ in windows for text in window] == texts
    for window, awaited in windows:
        sizes = [sum(map(len, text)) for text in window]
        assert 0 < len(window) <= most
        assert sum(sizes[:-1]) < characters
        assert not awaited


@given(texts=TEXTS, most=st.integers(1, 5), characters=st.integers(1, 20), data=st.data())
def test_windows_do_not_depend_on_where_one_begins(
    texts: list[str | tuple[str, str]], most: int, characters: int, data: st.DataObject
) -> None:
    """What lets a run that goes on make the same batches as one that was never stopped."""
    windows = [window for window, _ in windows_of(texts, most, characters)]
    done = data.draw(st.integers(0, len(windows)))
    rest = texts[sum(map(len, windows[:done])) :]
    assert [window for window, _ in windows_of(rest, most, characters)] == windows[done:]


def test_none_ends_a_window_for_somebody_who_waits() -> None:
    windows = list(windows_of(["a", None, None, "b", "c", None, "d"], 2, 100))
    assert windows == [(["a"], True), ([], True), (["b", "c"], False), ([], True), (["d"], False)]


@pytest.mark.parametrize("wrong", [7, b"bytes", ["one"], ("a", "b", "c"), ("a", None), {"a": "b"}])
def test_what_is_no_text_is_named_with_its_place(wrong: object) -> None:
    with pytest.raises(TypeError, match=r"texts\[2\].*pair"):
        list(windows_of(["a", None, "b", wrong], 10, 100))  # type: ignore[list-item]


@given(lengths=LENGTHS, tokens=st.integers(1, 60), most_rows=st.none() | st.integers(1, 5))
def test_batches_hold_every_row_once_within_the_limits(lengths: list[int], tokens: int, most_rows: int | None) -> None:
    rows = [Row([0] * length, None, None, False) for length in lengths]
    batches = list(batches_of(rows, tokens, most_rows))
    assert sorted(chain(*batches)) == list(range(len(rows)))
    flat = [lengths[i] for i in chain(*batches)]
    assert flat == sorted(flat)  # each batch, too, comes shortest first, as the packed layout needs it
    for batch in batches:
        assert len(batch) == 1 or sum(lengths[i] for i in batch) <= tokens
        assert most_rows is None or len(batch) <= most_rows


def original_truncation(first: list[int], second: list[int], room: int) -> None:
    """`_truncate_seq_pair` as the paper's code describes it: one token off the longer side, the second if equal."""
    while len(first) + len(second) > room:
        (first if len(first) > len(second) else second).pop()


@pytest.mark.parametrize("sizes", [(3, 4), (10, 10), (1, 30), (30, 1), (9, 12), (0, 30), (30, 0), (0, 0)])
def test_pairs_are_cut_as_the_original_cuts(extractor: FeatureExtractor, sizes: tuple[int, int]) -> None:
    tokenizer, longest = extractor.tokenizer, 17
    texts = ["cook " * sizes[0], "rain " * sizes[1]]
    (row,) = rows_of([(texts[0], texts[1])], tokenizer, longest, marks=True)
    first, second = (tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text)) for text in texts)
    original_truncation(first, second, longest - 3)
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    assert row.ids == [cls, *first, sep, *second, sep]
    assert row.types == [0] * (len(first) + 2) + [1] * (len(second) + 1)
    assert row.counted == [False] + [True] * len(first) + [False] + [True] * len(second) + [False]
    assert row.truncated == (sum(sizes) > longest - 3)


@pytest.mark.parametrize("side", ["right", "left"])
def test_single_texts_are_cut_on_the_tokenizers_side(
    extractor: FeatureExtractor, side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = extractor.tokenizer
    monkeypatch.setattr(tokenizer, "truncation_side", side)
    long, short = rows_of(["cook rain cloud golden", "cook"], tokenizer, 4, marks=True)
    kept = ["cook", "rain"] if side == "right" else ["cloud", "golden"]
    assert tokenizer.convert_ids_to_tokens(long.ids) == ["[CLS]", *kept, "[SEP]"]
    assert long.counted == [False, True, True, False]
    assert (long.truncated, short.truncated) == (True, False)
