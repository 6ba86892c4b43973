"""Indexes that lie, their checksums right: an error that names the file and the variable, and no memory taken."""

import re
import subprocess
import sys
from dataclasses import asdict, fields
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pytorch_transformers.checkpoint.tensorflow.bundle import Bundle
from pytorch_transformers.checkpoint.tensorflow.messages import Entry, Extent, pack_entry, parse_entry
from pytorch_transformers.checkpoint.tensorflow.table import masked_crc32c, read_table
from pytorch_transformers.checkpoint.tensorflow.write import write_bundle

from .crafted import EXPECTED, STATE, attempt, claim, copied, data, index, write_index, write_parts

HUGE = 2**62
CLAIMS: list[tuple[str, dict[str, object], str]] = [
    ("a", {"shape": (HUGE,)}, "'a': the shape .* is impossible"),
    ("a", {"shape": (HUGE // 8,)}, "'a': 96 bytes are not the size of shape"),
    ("a", {"shape": (HUGE, HUGE)}, "'a': the shape .* is impossible"),
    ("a", {"shape": (HUGE, HUGE, 0), "nbytes": 0}, "'a': the shape .* is impossible"),
    ("a", {"shape": (-4, -6)}, r"'a': the shape \(-4, -6\) is impossible"),
    ("a", {"shape": None}, "'a': the shape of unknown rank is impossible"),
    ("a", {"shape": (1,) * 255}, "'a': the shape .* is impossible"),
    ("a", {"shape": (4, 5)}, r"'a': 96 bytes are not the size of shape \(4, 5\) and type float32"),
    ("a", {"dtype": 2}, "'a': 96 bytes are not the size of shape .* and type float64"),
    ("a", {"nbytes": -1}, "'a': its place is impossible"),
    ("a", {"offset": -1}, "'a': its place is impossible"),
    ("a", {"shard": -1}, "'a': it lies in data file -1 of 1"),
    ("a", {"shard": 1}, "'a': it lies in data file 1 of 1"),
    ("a", {"offset": 1}, "'a' and 'b' share bytes of data file 0"),
    ("a", {"offset": HUGE}, "ends before the end of 'a'"),
    ("a", {"dtype": 7, "offset": HUGE}, "ends before the end of 'a'"),
    ("a", {"shape": (HUGE // 4,), "nbytes": HUGE, "offset": 10**6}, "ends before the end of 'a'"),
    ("", {"shards": 0}, "it claims 0 data files"),
    ("", {"shards": -5}, "it claims -5 data files"),
    ("", {"endianness": 1}, "not little-endian.*on a machine like the one that wrote it"),
    ("", {"min_consumer": 2}, "version 1 of the format, for readers from version 2"),
    ("", {"bad_consumers": (1,)}, r"\(not \[1\]\)"),
    ("", {"producer": -1}, "version -1"),
]


@pytest.mark.parametrize(("name", "changes", "reason"), CLAIMS, ids=str)
def test_false_claims(prefix: Path, name: str, changes: dict[str, object], reason: str) -> None:
    claim(prefix, name, **changes)
    with pytest.raises(OSError, match=rf"x\.(index|data-00000-of-00001).*{reason}"):
        Bundle(prefix)


def test_many_claimed_data_files_cost_nothing(prefix: Path) -> None:
    claim(prefix, "", shards=2**31 - 1)
    with pytest.raises(OSError, match=r"x\.data-00000-of-2147483647 is missing"):
        Bundle(prefix)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (b"", None, "it has no header"),
        (b"", b"\xff", "it is no BundleHeaderProto"),
        (b"a", b"\xff", "'a': it is no BundleEntryProto"),
        (b"\xff\xfe", b"", r"the name b'\\xff\\xfe' is not UTF-8"),
        (b"\0a", b"", r"the part b'\\x00a' belongs to no variable"),
    ],
)
def test_wrong_entries(prefix: Path, key: bytes, value: bytes | None, reason: str) -> None:
    table = read_table(index(prefix))
    table.pop(key, None)
    if value is not None:
        table[key] = value
    write_index(prefix, table)
    with pytest.raises(OSError, match=rf"x\.index.*{reason}"):
        Bundle(prefix)


WHOLE = torch.arange(50.0).reshape(10, 5)
WRONG_PARTS: list[tuple[list[tuple[Extent, ...]], str]] = [
    ([((0, 5), (0, None)), ((4, 6), (0, None))], "overlap"),
    ([((0, 10), (0, 3)), ((3, 4), (2, 3))], r"the slices \[0:10, 0:3\] and \[3:7, 2:5\] overlap"),
    ([((0, 4), (0, None)), ((5, 5), (0, None))], "its slices hold 45 of 50 values"),
    ([((0, 5), (0, None))], "its slices hold 25 of 50 values"),
    ([((0, 5), (0, None)), ((5, 6), (0, None))], "outside the shape"),
    ([((-1, 5), (0, None)), ((5, 5), (0, None))], "outside the shape"),
    ([((0, HUGE), (0, None)), ((5, HUGE), (0, None))], "outside the shape"),
    ([((0, None),)], "a slice has 1 axes, the variable 2"),
    ([((0, None), (0, None), (0, None))], "a slice has 3 axes, the variable 2"),
]


@pytest.mark.parametrize(("places", "reason"), WRONG_PARTS, ids=str)
def test_slices_that_do_not_fill_the_variable(tmp_path: Path, places: list[tuple[Extent, ...]], reason: str) -> None:
    write_parts(tmp_path / "x", "w", WHOLE, places)
    with pytest.raises(OSError, match=rf"x\.index.*'w': .*{reason}"):
        Bundle(tmp_path / "x")


def test_slices_that_contradict_their_variable(tmp_path: Path) -> None:
    places: list[tuple[Extent, ...]] = [((0, 5), (0, None)), ((5, 5), (0, None))]
    write_parts(tmp_path / "x", "w", WHOLE, places)
    table = read_table(index(tmp_path / "x"))
    part = max(key for key in table if key.startswith(b"\0"))
    entry = parse_entry(table[part])
    for wrong, reason in [
        (None, "the entry of its slice .* is missing"),
        (Entry(**{**asdict(entry), "dtype": 3}), "is of another kind"),
        (Entry(**{**asdict(entry), "slices": tuple(places)}), "is of another kind"),
        (Entry(**{**asdict(entry), "shape": (5, 4)}), r"has the shape \(5, 4\)"),
        (Entry(**{**asdict(entry), "nbytes": 4}), "4 bytes are not the size"),
        (Entry(**{**asdict(entry), "offset": 0}), "share bytes"),
    ]:
        changed = {key: value for key, value in table.items() if key != part}
        write_index(tmp_path / "x", changed if wrong is None else {**changed, part: pack_entry(wrong)})
        with pytest.raises(OSError, match=rf"x\.index.*'w'.*{reason}"):
            Bundle(tmp_path / "x")
    # One flipped byte of a part spoils the variable.
    write_index(tmp_path / "x", table)
    content = bytearray(data(tmp_path / "x").read_bytes())
    content[-1] ^= 1
    data(tmp_path / "x").write_bytes(content)
    with pytest.raises(OSError, match=r"x\.data-00000-of-00001.*'w'.*checksum"):
        Bundle(tmp_path / "x").read("w")


def test_a_bool_that_is_neither(prefix: Path) -> None:
    content = bytearray(data(prefix).read_bytes())
    offset = Bundle(prefix)["b"].parts[0].offset
    content[offset : offset + 3] = b"\0\1\2"
    data(prefix).write_bytes(content)
    claim(prefix, "b", crc=masked_crc32c(b"\0\1\2"))
    with pytest.raises(OSError, match=r"x\.data-00000-of-00001.*'b'.*not of zeros and ones"):
        Bundle(prefix).read("b")


NUMBERS = st.one_of(st.integers(-3, 200), st.integers(-(2**31), 2**31 - 1))
LONG = st.one_of(NUMBERS, st.integers(-(2**63), 2**63 - 1))
EXTENTS = st.lists(st.tuples(LONG, st.none() | LONG), max_size=3).map(tuple)
CHANGES: dict[str, st.SearchStrategy[object]] = {
    "dtype": NUMBERS,
    "shape": st.none() | st.lists(LONG, max_size=4).map(tuple),
    "shard": NUMBERS,
    "offset": LONG,
    "nbytes": LONG,
    "crc": st.integers(0, 2**32 - 1),
    "slices": st.lists(EXTENTS, max_size=3).map(tuple),
}
assert CHANGES.keys() == {field.name for field in fields(Entry)}


@settings(max_examples=200)
@given(
    name=st.sampled_from(sorted(STATE)),
    changes=st.fixed_dictionaries({}, optional=CHANGES),
)
def test_any_claim_is_refused_or_leaves_the_values(
    original: Path, tmp_path_factory: pytest.TempPathFactory, name: str, changes: dict[str, object]
) -> None:
    prefix = copied(original, tmp_path_factory.mktemp("claims"))
    claim(prefix, name, **changes)
    found = attempt(prefix, name)
    if isinstance(found, str):
        assert re.search(rf"x\.(index|data-00000-of-00001) .*'{name}'|'{name}' is of type .*torch has none", found)
    else:
        # What stays possible is another name for the same bytes: a type or shape of the same size.
        assert found[2] == EXPECTED[name][2]
    for other in STATE.keys() - {name}:
        found = attempt(prefix, other)
        assert found == EXPECTED[other] or f"'{name}'" in found


@settings(max_examples=200)
@given(name=st.sampled_from(sorted(STATE)), value=st.binary(max_size=60), cut=st.booleans())
def test_any_bytes_in_place_of_an_entry(
    original: Path, tmp_path_factory: pytest.TempPathFactory, name: str, value: bytes, cut: bool
) -> None:
    prefix = copied(original, tmp_path_factory.mktemp("entry"))
    table = read_table(index(prefix))
    key = name.encode()
    table[key] = table[key][: len(value)] + value if cut else value
    write_index(prefix, table)
    found = attempt(prefix, name)
    assert found == EXPECTED[name] or f"'{name}'" in found


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="asks Linux for the size of the process")
def test_claims_take_no_memory(tmp_path: Path) -> None:
    """In a process that may take 300 MB more than it has: it would die where a claim was believed."""
    prefixes = []
    for number, (name, changes, _) in enumerate(CLAIMS):
        write_bundle(tmp_path / f"x{number}", STATE)
        claim(tmp_path / f"x{number}", name, **changes)
        prefixes.append(str(tmp_path / f"x{number}"))
    # 100 variables over the same bytes; and a variable whose 2000 slices are all over the same bytes.
    state = {f"v{number:03d}": torch.ones(1 << 16) for number in range(3)}
    write_bundle(tmp_path / "same", state)
    table = read_table(index(tmp_path / "same"))
    write_index(tmp_path / "same", {**table, **{b"w%04d" % number: table[b"v000"] for number in range(100)}})
    places: list[tuple[Extent, ...]] = [((start, 1), (0, None)) for start in range(2000)]
    write_parts(tmp_path / "parts", "w", torch.ones(2000, 16), places)
    table = read_table(index(tmp_path / "parts"))
    wide = Entry(1, (1, 1 << 16), 0, 0, 1 << 18, 0)
    table = {key: pack_entry(wide) if key.startswith(b"\0") else value for key, value in table.items()}
    table[b"w"] = pack_entry(Entry(1, (2000, 1 << 16), 0, 0, 0, 0, tuple(places)))
    write_index(tmp_path / "parts", table)
    data(tmp_path / "parts").write_bytes(bytes(1 << 18))
    prefixes += [str(tmp_path / "same"), str(tmp_path / "parts")]
    program = f"""
import resource, torch
from pathlib import Path
from pytorch_transformers.checkpoint.tensorflow.bundle import Bundle
pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + 300_000_000
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for prefix in {prefixes!r}:
    try:
        bundle = Bundle(prefix)
        for name in bundle:
            bundle.read(name)
    except OSError as error:
        assert prefix in str(error), error
        assert "allocate" not in str(error), error
        continue
    raise AssertionError(prefix)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
