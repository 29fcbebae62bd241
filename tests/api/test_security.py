"""Who is let in, from where, and what is told to whom."""

import json
import socket
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi.routing import iter_route_contexts
from starlette.testclient import TestClient

from ingest_assets.api.app import build_app
from ingest_assets.api.rate_limit import RateLimit
from ingest_assets.api.security import OPEN, Gate, Rules
from ingest_assets.api.tokens import Scope, Tokens
from ingest_assets.settings import Settings
from tests.api.conftest import TWO_STORES
from tests.api.served import Served
from tests.end_to_end.project import Project


def _routes() -> list[tuple[str, str]]:
    """Every method and path of the application, with something in the place of parameters."""
    app = build_app(Settings(), Rules(Tokens([]), frozenset(), 1, 1))
    routes = [(method, route.path) for route in iter_route_contexts(app.routes) for method in route.methods or ()]
    assert len(routes) > 10
    return sorted((method, str(path).replace("{", "").replace("}", "")) for method, path in routes)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Two organisations with a document each, and a token for every scope."""
    root = tmp_path_factory.mktemp("orgs")
    project = Project(root)
    made = {
        name: project.json("tokens", "new", "--user", name, "--scope", scope, "--org", org)
        for name, scope, org in (
            ("reader", "read", "ours"),
            ("writer", "write", "ours"),
            ("other", "admin", "theirs"),
        )
    }
    (root / "tokens.json").write_text(json.dumps({name: token["token"] for name, token in made.items()}))
    tokens = "".join(
        f'[[api.tokens]]\nhash = "{t["hash"]}"\nuser = "{name}"\nscopes = {json.dumps(t["scopes"])}\n'
        f'org_id = "{t["org_id"]}"\n'
        for name, t in made.items()
    )
    project.configure(
        'default_embedder = "hash"\n[[sources]]\nname = "ours"\nuri = "ours"\norg_id = "ours"\n'
        '[[sources]]\nname = "theirs"\nuri = "theirs"\norg_id = "theirs"\n' + tokens
    )
    for org in ("ours", "theirs"):
        (root / org).mkdir()
        (root / org / "secret.md").write_text(f"The secret of {org} is kept in a drawer.")
    assert project.run("run").returncode == 0
    return project


@pytest.fixture(scope="module")
def orgs(project: Project) -> Iterator[Served]:
    """That project, served."""
    with Served(project, token="none of them") as server:
        yield server


def _user(orgs: Served, project: Project, name: str) -> httpx.Client:
    return orgs.as_user(json.loads((project.root / "tokens.json").read_text())[name])


@pytest.mark.parametrize(("method", "path"), _routes())
def test_every_route_needs_a_token(served: Served, method: str, path: str) -> None:
    """Whatever the application answers it answers to holders of a token alone; whether it lives all may ask."""
    answer = served.stranger.request(method, path)
    if path in OPEN:
        assert answer.status_code == 200
    else:
        assert answer.status_code == 401
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("path", ["/nowhere", "/api/documents/../../etc/passwd", "/sign-in", "/sign-in?token=wrong"])
def test_a_stranger_learns_nothing(served: Served, path: str) -> None:
    """Without a token even a page that is not there is 401, and so is a wrong token where one signs in."""
    assert served.stranger.get(path).status_code == 401
    assert served.stranger.get(path, headers={"Authorization": "Bearer wrong"}).status_code == 401


def test_a_browser_signs_in_once(served: Served) -> None:
    """The printed address gives a cookie no script reads and no other site sends, and leaves no token behind."""
    with httpx.Client(base_url=served.url) as browser:
        answer = browser.get(served.sign_in)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert browser.get("/api/stores").status_code == 200


def test_a_token_can_be_typed(served: Served) -> None:
    """The form for strangers sends a token that stands in no address; only from our own page, and never much."""
    own = {"Origin": served.url}
    with httpx.Client(base_url=served.url) as browser:
        for form, headers, status in (
            ({"token": served.token}, {}, 403),
            ({"token": served.token}, {"Origin": "http://evil.example"}, 403),
            ({"token": "wrong"}, own, 401),
            ({"token": "x" * 5000}, own, 413),
            ({"token": served.token}, {**own, "Host": "evil.example"}, 421),
        ):
            assert browser.post("/sign-in", data=form, headers=headers).status_code == status
        assert browser.get("/api/stores").status_code == 401
        answer = browser.post("/sign-in", data={"token": served.token}, headers=own)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert browser.get("/api/stores").status_code == 200


def test_signing_out(served: Served) -> None:
    """The cookie goes, with the rules it came with; only our own page may ask for that, and no link does it."""
    with httpx.Client(base_url=served.url) as browser:
        given = browser.get(served.sign_in).headers["set-cookie"]
        assert browser.get("/sign-out").status_code == 404
        assert browser.post("/sign-out", headers={"Origin": "http://evil.example"}).status_code == 403
        assert browser.get("/api/stores").status_code == 200
        answer = browser.post("/sign-out", headers={"Origin": served.url})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        taken = answer.headers["set-cookie"]
        assert [part.partition("=")[0] for part in (given, taken)] == [given.partition("=")[0]] * 2
        assert set(given.split("; ")[1:]) <= set(taken.split("; "))
        assert browser.get("/api/stores").status_code == 401


@pytest.mark.parametrize("cookie", ['prefs={"a": 1}', "a[b]=1", "a@b=1", "bare", 'a="', "ü=1", "ingest_token_1=x"])
def test_cookies_of_others_do_no_harm(served: Served, cookie: str) -> None:
    """A browser sends what any program on any port of this machine has set; ours is found beside it all the same."""
    signed_in = httpx.get(served.sign_in).headers["set-cookie"].partition(";")[0]
    for sent in (f"{cookie}; {signed_in}", f"{signed_in}; {cookie}"):
        headers = {"Cookie": sent.encode()}
        assert httpx.get(f"{served.url}/api/stores", headers=headers).status_code == 200


def test_two_servers_of_one_machine_have_a_cookie_each(served: Served) -> None:
    """Signing in at a server on another port signs nobody out here."""
    names = {
        httpx.get(served.sign_in, headers={"Host": f"localhost:{port}"}).headers["set-cookie"].partition("=")[0]
        for port in (1, 2)
    }
    assert len(names) == 2


def test_a_change_by_cookie_comes_from_our_own_page(served: Served) -> None:
    """With a cookie, a change needs this server's Origin; with a bearer token none, and never a foreign one."""
    ask = {"query": "engine"}
    with httpx.Client(base_url=served.url) as browser:
        browser.get(served.sign_in)
        assert browser.post("/api/search", json=ask).status_code == 403
        assert browser.post("/api/search", json=ask, headers={"Origin": "http://evil.example"}).status_code == 403
        assert browser.post("/api/search", json=ask, headers={"Origin": "null"}).status_code == 403
        assert browser.post("/api/search", json=ask, headers={"Origin": served.url}).status_code == 200
    assert served.client.post("/api/search", json=ask).status_code == 200
    assert served.client.post("/api/search", json=ask, headers={"Origin": "http://evil.example"}).status_code == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "localhost.evil.example", "", "127.0.0.1@evil"])
def test_a_foreign_host_is_refused(served: Served, host: str) -> None:
    """A name that somebody else's DNS points here is not answered, not even about health."""
    for path in ("/healthz", "/api/stores"):
        assert served.client.get(path, headers={"Host": host}).status_code in (400, 421)
    assert served.client.get("/api/stores", headers={"Host": "LOCALHOST:1"}).status_code == 200


def test_every_answer_is_guarded(served: Served) -> None:
    """Answers of every kind forbid inline scripts, frames and guessing of types; none allows another origin."""
    for answer in (
        served.client.get("/docs"),
        served.client.get("/api/stores", headers={"Origin": "http://evil.example"}),
        served.client.get("/nowhere"),
        served.stranger.get("/api/stores"),
    ):
        policy = answer.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert not [name for name in answer.headers if name.startswith("access-control")]
    assert "<script>" not in served.client.get("/docs").text


def test_a_body_has_a_limit_however_it_comes(served: Served) -> None:
    """Too long a body is refused by its header, and while it is read if the header does not say."""
    long = b" " * (17 * 1024 * 1024)
    assert served.client.post("/api/search", content=long).status_code == 413
    assert served.client.post("/api/search", content=(long[:65_536] for _ in range(300))).status_code == 413


def test_a_reader_cannot_write(orgs: Served, project: Project) -> None:
    """Every route that changes something refuses a token of the scope read."""
    reader = _user(orgs, project, "reader")
    refused = {
        (method, path): reader.request(method, path, json={}).status_code
        for method, path in _routes()
        if method not in ("GET", "HEAD", "OPTIONS") and path != "/api/search"
    }
    assert set(refused.values()) <= {403}


def test_an_organisation_sees_its_own_documents_only(orgs: Served, project: Project) -> None:
    """Lists, counts, records, search, metrics: nothing of another organisation is in any of them."""
    ours, theirs = _user(orgs, project, "reader"), _user(orgs, project, "other")
    [mine] = ours.get("/api/documents").json()["documents"]
    [other] = theirs.get("/api/documents").json()["documents"]
    assert (mine["source"], other["source"]) == ("ours", "theirs")
    for part in ("", "/history", "/chunks"):
        assert ours.get(f"/api/documents/{other['documentId']}{part}").status_code == 404
        assert ours.get(f"/api/documents/{mine['documentId']}{part}").status_code == 200
    hits = ours.post("/api/search", json={"query": "secret", "k": 100}).json()["hits"]
    assert {hit["documentId"] for hit in hits} == {mine["documentId"]}
    narrow = {"query": "secret", "documentId": other["documentId"]}
    assert ours.post("/api/search", json=narrow).status_code == 404
    assert ours.get("/api/documents/counts").json()["total"] == 1
    assert ours.get("/api/stores").json()["stores"][0]["counts"]["Ingested"] == 1
    assert 'ingest_links{store="default",state="Ingested"} 1' in ours.get("/metrics").text


def test_nothing_of_the_machine_is_told(orgs: Served, project: Project) -> None:
    """No path and no token stands in an answer or in the log, whatever was asked."""
    reader = _user(orgs, project, "reader")
    token = reader.headers["authorization"].split()[1]
    said = [
        orgs.stranger.get(f"/sign-in?token={token}x").text,
        reader.get(f"/nowhere?token={token}").text,
        reader.get("/api/documents", params={"status": token, "limit": "-1"}).text,
        reader.post("/api/search", json={"query": token, "store": "nope"}).text,
        *(reader.get(path).text for path in ("/api/documents", "/api/stores", "/metrics", "/api/documents/counts")),
    ]
    everything = "".join(said) + orgs.log
    assert str(project.root) not in everything
    assert token not in everything


def test_a_state_that_fails_is_told_without_its_place(tmp_path: Path) -> None:
    """A state store that cannot be read is 503 with what to do; where it lies stands neither in answer nor log."""
    project = Project(tmp_path, TWO_STORES)
    with Served(project) as server:
        state = tmp_path / ".ingest" / "state.db"
        with sqlite3.connect(state) as connection:
            connection.execute("ALTER TABLE records RENAME TO gone")
        answer = server.client.get("/readyz")
        assert answer.status_code == 503
        assert "ingest status" in answer.json()["detail"]
        assert str(tmp_path) not in answer.text + server.log


def test_another_machine_needs_a_token_of_ours(tmp_path: Path) -> None:
    """An address that others can reach is not served with a token that was just made up; nor with one to guess."""
    project = Project(tmp_path)
    refused = project.run("serve", "--host", "0.0.0.0", "--port", "0")
    assert refused.returncode == 2
    assert "ingest tokens new" in refused.stderr
    project.environment["INGEST_API_TOKEN"] = "guess me"
    assert project.run("serve", "--host", "0.0.0.0", "--port", "0").returncode == 2
    project.environment["INGEST_API_TOKEN"] = "a token that is long enough to be one"
    with Served(project, "--host", "0.0.0.0", token=project.environment["INGEST_API_TOKEN"]) as server:
        assert server.token not in server.sign_in
        port = server.url.rpartition(":")[2]
        assert server.client.get(f"http://127.0.0.1:{port}/api/stores").status_code == 200


def test_a_taken_port_is_told(tmp_path: Path) -> None:
    """A port that somebody else has ends the command with what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = Project(tmp_path).run("serve", "--port", str(taken.getsockname()[1]))
    assert refused.returncode == 2
    assert "--port" in refused.stderr


def test_the_rate_is_limited(tmp_path: Path) -> None:
    """Who asks too often waits as long as the answer says; wrong tokens are counted by where they come from."""
    project = Project(tmp_path, TWO_STORES + "[api]\nrequests_per_minute = 5\n")
    with Served(project) as server:
        answers = [server.client.get("/api/stores") for _ in range(8)]
        assert [answer.status_code for answer in answers].count(429) >= 2
        assert int(answers[-1].headers["retry-after"]) >= 1
        wrong = [{"Authorization": f"Bearer {number}"} for number in range(100)]
        guesses = [server.stranger.get("/api/stores", headers=headers).status_code for headers in wrong]
        assert guesses[0] == 401
        assert 429 in guesses


def test_a_bucket_fills_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """After as long as it said, a caller may ask again."""
    now = 100.0
    monkeypatch.setattr("ingest_assets.api.rate_limit.time.monotonic", lambda: now)
    limit = RateLimit(2)
    assert [limit.wait_seconds("a") for _ in range(2)] == [0, 0]
    wait = limit.wait_seconds("a")
    assert wait == pytest.approx(30)
    assert limit.wait_seconds("b") == 0
    now += wait
    assert limit.wait_seconds("a") == 0


def test_scopes_include_those_below() -> None:
    """A token to write may read; one to read may nothing else."""
    from ingest_assets.api.tokens import Caller

    assert Caller.with_scopes("u", "o", [Scope.WRITE]).scopes == {Scope.READ, Scope.WRITE}
    assert Caller.with_scopes("u", "o", [Scope.ADMIN]).reading_only().scopes == {Scope.READ}


def test_a_fault_is_answered_like_everything_else(caplog: pytest.LogCaptureFixture) -> None:
    """A fault of ours tells nothing of itself, in its answer, which has every header, or in the server's log."""

    async def broken(*_: object) -> None:
        raise RuntimeError("/home/somebody/their-key")

    answer = TestClient(Gate(broken, Rules(Tokens([]), frozenset({"testserver"}), 10, 10))).get("/healthz")
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "content-security-policy" in answer.headers
    assert "RuntimeError at " in caplog.text
    assert "their-key" not in caplog.text + answer.text


def test_head_is_get_without_a_body(served: Served) -> None:
    """Monitors ask so, of health and of pages; a stranger gets no further than he does by GET."""
    for path in ("/healthz", "/api/stores", "/"):
        got, head = served.client.get(path), served.client.head(path)
        assert (head.status_code, head.headers["content-type"], head.content) == (200, got.headers["content-type"], b"")
    assert served.stranger.head("/api/stores").status_code == 401


def test_who_waits_when_the_server_stops_is_told(tmp_path: Path) -> None:
    """Ctrl-C waits some seconds for requests under way, then tells them to come again; it is no fault of ours."""
    with Served(Project(tmp_path, TWO_STORES)) as server, socket.socket() as slow:
        slow.connect(("127.0.0.1", int(server.url.rpartition(":")[2])))
        lines = ("POST /api/search HTTP/1.1", f"Host: {server.url.removeprefix('http://')}", "Content-Length: 9")
        slow.sendall("\r\n".join((*lines, f"Authorization: Bearer {server.token}", "", "{")).encode())
        server.client.get("/readyz")  # so the one before has been let in
        assert server.stop() == 0
        assert slow.recv(20).startswith(b"HTTP/1.1 503")
        assert "Traceback" not in server.log
