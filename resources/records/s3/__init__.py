"""Records as JSON lines in a bucket: no server but the bucket, up to about 100,000 documents.

prefix/format.json                                 which format, how many shards
prefix/<kind, percent-encoded>/<shard>.jsonl.zst   the records of a kind whose keys fall into the shard
"""
