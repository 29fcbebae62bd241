"""What a server answers that is no success: which of it is tried again, and what is told."""

import os

import msgspec
import pytest

from resources.store.store import Removal, StoreConfigError, StoreCorruptError, StoreTooNewError, StoreUnavailableError
from tests.servers.faults import HeldRequests, answer
from tests.store.contract import build, search, texts_of
from tests.store.opensearch_server import bulk_of, path_has, refused_items


class TestErrors:
    @pytest.mark.parametrize("status", [429, 503])
    def test_no_room_is_tried_again(self, store, server, status):
        """What the server refused for want of room or of a shard is sent again, whole requests and single rows."""
        server.proxy.inject(answer(status), path_has("_mapping"))
        server.proxy.inject(refused_items(status, "es_rejected_execution_exception"), bulk_of("chunk"))
        store.write([build("a", ["one"])])
        assert texts_of(store, "a") == ["one"]

    def test_only_the_refused_rows_are_sent_again(self, store, server):
        """A row that was taken is not sent a second time."""
        sizes = []

        def refuse_the_second(request, forward):
            sizes.append(len(request.body.splitlines()) // 2)
            return refused_items(429, "es_rejected_execution_exception", b'"two"')(request, forward)

        def count(request, forward):
            sizes.append(len(request.body.splitlines()) // 2)
            return forward()

        server.proxy.inject(refuse_the_second, bulk_of("chunk"))
        server.proxy.inject(count, bulk_of("chunk"))
        store.write([msgspec.structs.replace(build("a", ["one", "two", "three"]), entries=[])])
        assert sizes == [3, 1]

    def test_trying_ends(self, store, server):
        """A server that stays full is unavailable; nothing else is tried three times."""
        for _ in range(3):
            server.proxy.inject(answer(429), path_has("_mapping"))
        with pytest.raises(StoreUnavailableError, match="429"):
            search(store, "one")

    @pytest.mark.parametrize(("status", "meaning"), [(500, StoreUnavailableError), (502, StoreUnavailableError)])
    def test_other_faults_are_not_tried_again(self, store, server, status, meaning):
        """A request that may have been carried out is not sent again."""
        server.proxy.inject(answer(status), path_has("_mapping"))
        with pytest.raises(meaning, match=str(status)):
            search(store, "one")

    @pytest.mark.parametrize("status", [401, 403])
    def test_refused_user(self, store, server, status):
        """Wrong credentials need a person, and the message says where they come from."""
        server.proxy.inject(answer(status), path_has("_mapping"))
        with pytest.raises(StoreConfigError, match=rf"refuses \({status}\).*username_env"):
            search(store, "one")

    @pytest.mark.parametrize("status", [302, 400, 405])
    def test_something_else_answers(self, store, server, status):
        """What is no OpenSearch, or an old one, is a matter for a person and no document's fault."""
        server.proxy.inject(answer(status, b"<html>", "text/html"), path_has("_mapping"))
        with pytest.raises(StoreConfigError, match=rf"does not take a request \({status}\).*OpenSearch 2\.4"):
            store.write([build("a", ["one"])])

    def test_bad_document_fails_alone(self, store, server):
        """One row the server cannot hold fails its document; the others of the call stand."""
        with pytest.raises(ValueError, match=r"Document 'bad'.*fencing_token"):
            store.write([build("a", ["one"]), build("bad", ["bad"], token=2**63), build("b", ["two"])])
        assert [held.document_id for held in store.held_documents()] == ["a", "b"]
        assert [r.n_kept for r in store.write([build("a", ["one"]), build("b", ["two"])])] == [1, 1]

    def test_removal_that_cannot_be_held(self, store):
        """A removal whose head the server refuses is no success."""
        with pytest.raises(ValueError, match="Document 'bad'"):
            store.remove([Removal("bad", 2**63)])

    def test_bad_row_of_a_document_that_stands(self, store, server):
        """The document stays as it was when one row of its new version is refused."""
        store.write([build("a", ["one"])])
        server.proxy.inject(refused_items(400, "mapper_parsing_exception", b'"bad"'), bulk_of("chunk"))
        with pytest.raises(ValueError, match=r"Document 'a'.*mapper_parsing"):
            store.write([build("a", ["one", "bad"], token=2)])
        assert texts_of(store, "a") == ["one"]

    def test_row_too_large_for_a_request(self, store, server):
        """A request the server finds too large is the document's fault."""
        server.proxy.inject(answer(413), bulk_of("chunk"))
        with pytest.raises(ValueError, match="larger than"):
            store.write([build("a", ["one"])])

    def test_another_mapping(self, store, server):
        """A mapping that lacks our fields is the store's damage, not the document's."""
        server.proxy.inject(refused_items(400, "strict_dynamic_mapping_exception"), bulk_of("chunk"))
        with pytest.raises(StoreCorruptError, match="another mapping"):
            store.write([build("a", ["one"])])

    def test_index_of_another_program(self, store, server, prefix):
        """An index that is not ours is not taken for a store, nor dropped."""
        server.ask("PUT", f"/{prefix}-test", {"mappings": {"properties": {"text": {"type": "text"}}}})
        for action in (lambda: search(store, "one"), lambda: store.write([build("a", ["one"])]), store.drop):
            with pytest.raises(StoreCorruptError, match=f"{prefix}-test.*not made by this program"):
                action()

    def test_newer_format(self, store, server, prefix):
        """An index of a newer program is left alone, with a clear message."""
        store.write([build("a", ["one"])])
        [mapping] = server.ask("GET", f"/{prefix}-test/_mapping").values()
        meta = mapping["mappings"]["_meta"] | {"format_version": 99, "embedder": "in another form"}
        server.ask("PUT", f"/{prefix}-test/_mapping", {"_meta": meta})
        for action in (
            lambda: search(store, "one"),
            lambda: store.write([build("b", ["two"])]),
            lambda: store.remove([Removal("a", 2)]),
            store.held_documents,
        ):
            with pytest.raises(StoreTooNewError, match=r"'test'.*99"):
                action()

    def test_nobody_answers(self, store, server):
        """A connection that is refused may heal."""
        gone = server.store(url="http://127.0.0.1:9")
        with pytest.raises(StoreUnavailableError, match=r"127\.0\.0\.1:9 cannot be reached"):
            search(gone, "one")

    def test_answer_takes_too_long(self, store, server):
        """Waiting has an end, and the next call works again."""
        store.write([build("a", ["one"])])
        impatient = server.store(timeout=2)
        with HeldRequests() as held:
            server.proxy.inject(held, path_has("_mapping"))
            with pytest.raises(StoreUnavailableError):
                search(impatient, "one")
        assert texts_of(impatient, "a") == ["one"]

    def test_search_the_server_does_not_know(self, store, server):
        """A server without k-NN queries is told from a document that is at fault."""
        store.write([build("a", ["one"])])
        with pytest.raises(StoreConfigError, match="k-NN plugin"):
            search(server.store(search="exact"), "one")

    def test_too_many_for_the_client(self, store, monkeypatch):
        """Searching by itself is for small stores, and says so."""
        from resources.store.opensearch import nearest as opensearch_nearest

        store.write([build("a", ["one", "two", "three"])])
        monkeypatch.setattr(opensearch_nearest, "_MOST_FOR_CLIENT", 2)
        with pytest.raises(StoreConfigError, match="'client' is for at most 2"):
            search(store, "one")

    def test_too_many_results(self, store):
        """What the server would not answer at once is refused before it is asked."""
        with pytest.raises(ValueError, match="10000"):
            search(store, "one", 10_001)

    def test_forked_child_has_its_own_connections(self, store):
        """A child leaves its parent's connections alone, and both go on."""
        store.write([build("a", ["one"])])
        child = os.fork()
        if child == 0:
            os._exit(0 if texts_of(store, "a") == ["one"] else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert texts_of(store, "a") == ["one"]
