"""Sources that list the same are found, whatever way leads to it, and only those."""

import pytest

from resources.document_source.exclusion import DEFAULT_EXCLUDE
from resources.document_source.open_source import open_source
from resources.document_source.overlap import Overlap, overlaps


@pytest.fixture
def base(tmp_path):
    """Folders, and links to them."""
    for name in ("docs/sub/deep", "docs/.hidden", "docs2", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to("docs/sub")
    (tmp_path / "docs/out").symlink_to(tmp_path / "elsewhere")
    return tmp_path


@pytest.mark.parametrize(
    ("outer", "inner", "key"),
    [
        ("docs", "docs", ""),
        ("docs", "docs/", ""),
        ("docs", "docs2/../docs/sub", "sub"),
        ("docs", "docs/sub/deep", "sub/deep"),
        ("docs", "link", "sub"),
        ("docs", "not-there/../docs/sub", "sub"),
        ("docs", "docs2", None),
        ("docs", "docs/.hidden", None),
        ("docs", "docs/out", None),
        ("s3://b", "s3://b/p", "p"),
        ("s3://b/p", "s3://b/p/q/r?region=eu-central-1", "q/r"),
        ("s3://b/p", "s3://b/p?region=eu-central-1", ""),
        ("s3://b/p", "s3://b/pq", None),
        ("s3://b/p", "s3://c/p/q", None),
        ("s3://b/p", "s3://b/p/q?endpoint_url=http://127.0.0.1:8333", None),
        ("docs", "s3://docs/sub", None),
    ],
)
def test_who_lies_in_whom(base, outer, inner, key):
    """In whichever order they stand, the outer one is named first, with where the inner one is."""
    one = open_source("outer", outer, base, "default", DEFAULT_EXCLUDE)
    other = open_source("inner", inner, base, "default", DEFAULT_EXCLUDE)
    expected = [] if key is None else [Overlap("outer", "inner", key)]
    assert overlaps([one, other], {"inner"}) == overlaps([one, other], {"outer"}) == expected
    if key != "":
        assert overlaps([other, one], {"inner"}) == expected


def test_what_is_left_out_of_the_outer_one(base):
    """Whoever has put the inner folder into `exclude`, or keeps documents of another organisation, is told nothing."""
    inner = open_source("inner", "docs/sub/deep", base, "default", DEFAULT_EXCLUDE)
    assert overlaps([open_source("outer", "docs", base, "default", ["sub"]), inner], {"inner"}) == []
    assert overlaps([open_source("outer", "docs", base, "another", ()), inner], {"inner"}) == []


def test_every_pair_once(base):
    """Three at one place are three pairs; a run of one of them is told of those that concern it."""
    sources = [open_source(name, "docs", base, "default", ()) for name in "abc"]
    found = overlaps(sources, set("abc"))
    assert [(overlap.outer, overlap.inner) for overlap in found] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert overlaps(sources, {"c"}) == found[1:]
