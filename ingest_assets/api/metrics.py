"""What monitoring reads, as Prometheus spells it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse

from ingest_assets.api.choosing import counted
from ingest_assets.api.services import READS, Asking, Given, Services
from resources.clock import utc_now
from resources.document_state.ingest_jobs import JobStage
from resources.document_state.label import DocumentLabel
from resources.document_state.model import GONE, LinkState, Phase
from resources.document_state.run_tally import RunOutcome
from resources.document_state.workers import WorkerRecord, WorkerWatch

router = APIRouter(tags=["metrics"], dependencies=[READS])
_MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[tuple[str, str], ...]


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(services: Given, caller: Asking) -> PlainTextResponse:
    """Documents, links and jobs of the caller's organisation, and the workers there are."""
    components = services.components
    labels = await counted(services, caller, lambda label: label.presence not in GONE)
    watch = WorkerWatch(components.backend, components.settings.lease)
    records = await watch.all()
    workers = Counter("dead" if worker.dead else "living" for worker in records)
    jobs = await components.jobs.count_by_status(caller.org_id)
    as_of = services.index.as_of()
    age = (utc_now() - as_of).total_seconds() if as_of is not None else 0.0
    text = "".join(
        [
            _family("ingest_documents", "Documents by phase, status and reason.", _by_phase(labels)),
            _family("ingest_links", "Documents in stores by state.", _links(labels)),
            _family("ingestion_links_total", "Documents in all stores together by state, now.", _by_state(labels)),
            _family("ingest_jobs", "Jobs by status.", {(("status", status),): n for status, n in jobs.items()}),
            _family(
                "ingest_workers",
                "Workers with a record; a dead one's documents are about to be taken up.",
                {(("state", state),): workers[state] for state in ("living", "dead")},
            ),
            *(await _of_project(services, records) if caller.org_id == services.settings.org_id else ()),
            _family("ingest_read_model_age_seconds", "How old lists and counts may be.", {(): age}),
        ]
    )
    return PlainTextResponse(text, media_type=_MEDIA_TYPE)


async def _of_project(services: Services, workers: Sequence[WorkerRecord]) -> list[str]:
    """What is the project's own, and other organisations see nothing of: runs, and the bill."""
    return [*await _runs(services, workers), *await _spent(services)]


async def _runs(services: Services, workers: Sequence[WorkerRecord]) -> list[str]:
    """How runs ended, and how long they were at each stage; the workers were read before, so nothing counts twice."""
    tally = await services.components.run_tally.read()
    seconds = tally.seconds_with(workers)
    return [
        _family(
            "ingest_runs_total",
            "Runs that ended, by outcome.",
            {(("outcome", outcome),): tally.runs.get(outcome, 0) for outcome in RunOutcome},
            "counter",
        ),
        _family(
            "ingest_stage_seconds_total",
            "Seconds that runs were at each stage, the latest one that a batch of theirs has entered.",
            {(("stage", stage),): seconds.get(stage, 0.0) for stage in JobStage},
            "counter",
        ),
    ]


async def _spent(services: Services) -> list[str]:
    """What models cost so far, by whichever process."""
    cost: Counter[Labels] = Counter()
    calls: Counter[Labels] = Counter()
    tokens: Counter[Labels] = Counter()
    for models in (await services.components.ledger.report()).days.values():
        for model, spent in models.items():
            cost[("model", model),] += spent.micro_usd
            calls[("model", model),] += spent.calls
            tokens[("model", model), ("direction", "input")] += spent.input_tokens
            tokens[("model", model), ("direction", "output")] += spent.output_tokens
    usd = {labels: micro / 1_000_000 for labels, micro in cost.items()}
    return [
        _family("ingest_spend_usd_total", "What calls to models cost.", usd, "counter"),
        _family("ingest_model_calls_total", "Calls to models.", calls, "counter"),
        _family("ingest_tokens_total", "Tokens sent to models and received.", tokens, "counter"),
    ]


def _by_phase(labels: Mapping[DocumentLabel, int]) -> Counter[Labels]:
    found: Counter[Labels] = Counter()
    for label, n in labels.items():
        for phase in Phase:
            found[("phase", phase), ("status", label.status(phase)), ("reason", label.reason(phase) or "")] += n
    return found


def _links(labels: Mapping[DocumentLabel, int]) -> Counter[Labels]:
    found: Counter[Labels] = Counter()
    for label, n in labels.items():
        for slug, state, _ in label.links:
            found[("store", slug), ("state", state)] += n
    return found


def _by_state(labels: Mapping[DocumentLabel, int]) -> Counter[Labels]:
    """Every state is named, so that one without documents is 0 and not unknown."""
    found: Counter[Labels] = Counter({(("state", state),): 0 for state in LinkState})
    for label, n in labels.items():
        for _, state, _ in label.links:
            found[("state", state),] += n
    return found


def _family(name: str, about: str, values: Mapping[Labels, float], kind: str = "gauge") -> str:
    lines = [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
    lines += [f"{name}{_labels(labels)} {value}" for labels, value in sorted(values.items())]
    return "\n".join(lines) + "\n"


def _labels(labels: Iterable[tuple[str, str]]) -> str:
    text = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{text}}}" if text else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
