"""The tags our runs carry in Dagster."""

JOB_TAG = "ingest/job"
KIND_TAG = "ingest/kind"
RESULT_TAG = "ingest/result"
STAGE_TAG = "ingest/stage"
STATUS_TAG = "ingest/status"
