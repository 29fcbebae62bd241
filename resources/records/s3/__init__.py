"""Records as JSON lines in a bucket: no server but the bucket, up to about 100,000 documents.

prefix/format.json                                      which format, how many shards
prefix/<kind, percent-encoded>/<shard>.jsonl.zst        the records of a kind whose keys fall into the shard: its head
prefix/<kind, percent-encoded>/<shard>-<id>.jsonl.zst   its base, where it is large: the head has what changed since

A head is compared and set; a base is put once, before the head that names it, and removed when no head does any more.
"""
