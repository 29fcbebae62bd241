"""The order of what a search has found: by meaning and by words."""

import time

import msgspec
import pytest

from ingest_assets.requests.ranking import ranked
from ingest_assets.requests.searching import nearest
from ingest_assets.requests.words import words_of
from ingest_assets.targets import Target
from resources.artifact_store.artifact import Place
from resources.embedder.wordllama_embedder import WordLlamaEmbedder
from resources.store.duckdb.duckdb_store import DuckDBStore
from resources.store.store import Hit
from tests.store.contract import build

PUMPS = [f"Error E{code}: the pump of the circuit stopped, for the valve did not open in time." for code in range(1500)]


def hit(text: str, score: float = 0.5, title: str = "Title", document_id: str = "d") -> Hit:
    """A hit of a store."""
    return Hit(score, document_id, f"docs:{document_id}", title, text, text, Place(0, len(text)))


def order(query: str, *texts: str, score: float = 0.5) -> list[str]:
    """The texts as they come for a query, all equally near to it in meaning."""
    return [hit.text for hit in ranked(query, [hit(text, score) for text in texts])]


@pytest.fixture
def pumps(tmp_path) -> Target:
    """A store of chunks that mean the same, but for the code of an error."""
    embedder = WordLlamaEmbedder()
    store = DuckDBStore("s", tmp_path / "s.duckdb", embedder.stamp())
    given = build("pumps", PUMPS)
    vectors = zip((chunk.chunk_id for chunk in given.chunks), embedder.embed(PUMPS), strict=True)
    store.write([msgspec.structs.replace(given, vectors=dict(vectors))])
    return Target(store, embedder, {})


class TestRanked:
    def test_words_decide_between_equals(self):
        """Of chunks that are equally near in meaning the one with the query's words comes first."""
        assert order("timeout of the client", "the server", "the timeout", "client timeout")[0] == "client timeout"

    def test_rare_words_count_more(self):
        """A word that most of them have says little; one that a single chunk has says much."""
        texts = [f"pump number {i}" for i in range(20)]
        assert order("pump E4711", *texts, "E4711")[0] == "E4711"

    def test_often_is_not_better_without_end(self):
        """A chunk that repeats one word does not outdo one that has both."""
        assert order("valve pump", "pump " * 1000, "valve and pump", "nothing")[0] == "valve and pump"

    def test_meaning_decides_between_equal_words(self):
        """Of chunks with the same words the nearer one comes first."""
        found = ranked("pump", [hit("a pump", 0.4), hit("the pump", 0.6), hit("no such thing", 0.7)])
        assert [hit.text for hit in found] == ["the pump", "a pump", "no such thing"]

    def test_titles_count(self):
        """What only the document is called, and not the chunk, is found as well."""
        found = ranked("warranty", [hit("two years", title="Delivery"), hit("three years", title="Warranty")])
        assert found[0].text == "three years"

    def test_score(self):
        """It is the mean of the cosine and of the share of the words: once two thirds, nothing nought, never 1."""
        scores = {hit.text: hit.score for hit in ranked("pump", [hit("pump", 0.9), hit("valve", 0.4)])}
        assert scores == {"pump": pytest.approx((0.9 + 2 / 3) / 2), "valve": pytest.approx(0.2)}
        assert ranked("pump", [hit("pump " * 10**5, 1.0), hit("x")])[0].score < 1

    def test_no_word_in_common(self):
        """Where no chunk has any word of the query, or the query none, the order stays as it was."""
        hits = [hit(text, score) for text, score in (("one", 0.5), ("two", 0.5), ("three", 0.1))]
        for query in ("else", "…!?", "", "_"):
            assert [found.text for found in ranked(query, hits)] == ["one", "two", "three"]

    def test_ties_stay_in_order(self):
        """Chunks of one score stay in the order of the store, which is by document and chunk."""
        assert order("pump", *(f"pump {i}" for i in range(9))) == [f"pump {i}" for i in range(9)]

    def test_nothing_found(self):
        """Nothing is nothing."""
        assert ranked("pump", []) == []


class TestWords:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("The Pump's fencing_token, v2.1", ["the", "pump", "s", "fencing", "token", "v2", "1"]),
            ("Straße STRASSE", ["strasse", "strasse"]),
            ("cafe\u0301 café", ["café", "café"]),
            ("\ufb01le \uff11\uff12", ["file", "12"]),
            ("ערב טוב", ["ערב", "טוב"]),
            ("한국어 문서", ["한국어", "문서"]),
            ("保証期間 は", ["保証", "証期", "期間", "は"]),
            ("ระยะ", ["ระ", "ะย", "ยะ"]),
            ("RFC保証", ["rfc", "保証"]),
            ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
            ("العَرَبِيَّة", ["العَرَبِيَّة"]),
            ("Daten\u00adbank web\u200bsite", ["datenbank", "website"]),
            ("\u202e\x00 \ud800 -- _", []),
        ],
    )
    def test_words_of(self, text, words):
        """Words as they are compared: without case, one form of each character, and pairs where no spaces part them."""
        assert list(words_of(text)) == words

    def test_a_word_of_a_script_without_spaces(self):
        """A word within a sentence of such a script is found."""
        assert order("保証期間", "これは配送についてです。", "この製品の保証期間は二年です。")[0].startswith("この製品")

    def test_a_word_of_one_character(self):
        """It is found within a sentence, too, and alone, and a longer word does not count for its characters."""
        assert order("水", "火です", "水道の水") == ["水道の水", "火です"]
        assert order("水道", "水と道", "水道")[0] == "水道"

    def test_the_same_words_in_another_order(self):
        """Chunks that have the same words are equal, in whichever order they have them."""
        words = ["pump", "valve", "valve", "alarm", "circuit", "circuit", "engine"]
        texts = [" ".join(words[i:] + words[:i]) for i in range(len(words))]
        found = ranked("pump valve alarm circuit engine", [*map(hit, texts), *map(hit, words)])
        assert [hit.text for hit in found][: len(texts)] == texts

    @pytest.mark.parametrize(
        "text",
        [("a" + "\u0301" * 4_000 + "\u0320" * 4_000) * 12, "\ufdfa" * 100_000, "a\u0301" * 50_000, "水" * 100_000],
        ids=["marks", "ligatures", "accents", "no spaces"],
    )
    def test_hostile_texts_take_no_time(self, text):
        """A text of which each letter costs far more than usual does not hold up a search, nor the server with it."""
        begun = time.process_time()
        for _ in range(10):
            list(words_of(text, characters=True))
        assert time.process_time() - begun < 1.2  # 0.4 at the most; 2 and 4 where one of the limits is missing


class TestNearest:
    def test_a_code_among_a_thousand(self, pumps):
        """What vectors hardly tell apart, words do: each error is the first answer to the question for it."""
        firsts = [nearest(pumps, f"why error E{n}?", 1, org_id="default")[0].text for n in (7, 700)]
        assert firsts == [PUMPS[7], PUMPS[700]]

    def test_as_many_as_were_asked_for(self, pumps):
        """Neither more nor fewer than asked for, also beyond those that are looked at by default."""
        assert [len(nearest(pumps, "pump", k, org_id="default")) for k in (1, 5, 1200, 9000)] == [1, 5, 1200, 1500]

    def test_scores_fall(self, pumps):
        """The best comes first."""
        scores = [hit.score for hit in nearest(pumps, "error E12", 100, org_id="default")]
        assert scores == sorted(scores, reverse=True)

    def test_what_is_no_text(self, pumps):
        """A query with a byte that is no UTF-8 is asked without it."""
        assert nearest(pumps, "error E12 \udcff", 1, org_id="default")[0].text == PUMPS[12]

    def test_filters_hold(self, pumps):
        """A document, a source or a tenant that is asked for is all that is looked at."""
        assert nearest(pumps, "error E12", 5, org_id="other") == []
        assert nearest(pumps, "error E12", 5, org_id="default", source="other") == []
        assert nearest(pumps, "error E12", 5, org_id="default", document_id="other") == []
        [found] = nearest(pumps, "error E12", 1, org_id="default", source="docs", document_id="pumps")
        assert found.text == PUMPS[12]
