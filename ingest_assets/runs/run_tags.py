"""The tags our runs carry in Dagster."""

FORCE_TAG = "ingest/force"  # put on a run by a person: everything is done again
JOB_TAG = "ingest/job"
PAGE_TAG = "ingest/page"  # where the job is on our own page
KIND_TAG = "ingest/kind"
RESULT_TAG = "ingest/result"
STAGE_TAG = "ingest/stage"
STATUS_TAG = "ingest/status"
