"""Every statement the pgvector store sends, each with the sentence that says what it is for.

Values are always bound. `Tables` fills in what cannot be: the names of the store's own tables, as quoted identifiers,
and the vectors' dimension, an integer.

Two locks keep order between processes. Who makes, adopts or drops tables holds an advisory lock, and then the table
`meta` alone; everybody else holds `meta` shared until the end of the transaction, so tables never change under a call.
Who writes documents holds their rows in `fences`, taken in the order of their ids, so that two writers cannot wait for
each other.
"""

# The second version added the checksums; the first is brought up by the first write.
FORMAT_VERSION = 2

# A transaction of a writer: each statement sees what others had committed when it began.
BEGIN_WRITING = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"

# A transaction of a reader: all statements see the store at one moment.
BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

# How long the transaction may take and wait. The last one frees the locks of a worker whose machine vanished.
SET_TIMEOUTS = """
SET LOCAL statement_timeout = {statement_timeout};
SET LOCAL lock_timeout = {lock_timeout};
SET LOCAL idle_in_transaction_session_timeout = {statement_timeout}
"""

# A commit that was reported survives a crash of the server, even where its default is not to wait for the disk: the
# document's record says afterwards that the store has it.
SET_DURABLE = """
SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'
"""

# Keep the tables as they are until the transaction ends. Before any SELECT, whose view of the data would be older.
HOLD_TABLES = "LOCK TABLE {meta} IN ACCESS SHARE MODE"

# Be alone with the tables.
HOLD_TABLES_ALONE = "LOCK TABLE {meta} IN ACCESS EXCLUSIVE MODE"

# Be the only one who makes tables in this database; the number is ours and means nothing.
HOLD_DATABASE = "SELECT pg_advisory_xact_lock(5219304187342219)"

# Let `vector` and its operators mean the extension's, wherever it was installed, and nobody else's.
FIND_EXTENSION = """
SELECT set_config('search_path', coalesce((
    SELECT 'pg_catalog, ' || quote_ident(nspname)
    FROM pg_catalog.pg_extension JOIN pg_catalog.pg_namespace ON pg_namespace.oid = extnamespace
    WHERE extname = 'vector'
), 'pg_catalog'), true)
"""

# Whether the database can hold every text.
SELECT_ENCODING = "SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database()"

# Whether schema and tables are there. Asked because CREATE SCHEMA IF NOT EXISTS needs the permission even if they are.
HAS_SCHEMA = "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = %(schema)s)"
HAS_TABLES = """
SELECT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = %(schema)s AND tablename = %(meta)s)
"""

# The extension, installed where the connecting user makes things; nothing if it is there.
CREATE_EXTENSION = "CREATE EXTENSION IF NOT EXISTS vector"

CREATE_SCHEMA = "CREATE SCHEMA {schema}"

# The shape of a store, made once. Ids sort by their bytes, as they do in Python.
CREATE_TABLES = (
    """
CREATE TABLE {meta} (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    format_version integer NOT NULL,
    embedder_name text,
    embedder_version text,
    dimension integer
)
""",
    """
CREATE TABLE {fences} (
    document_id text COLLATE "C" PRIMARY KEY,
    fencing_token bigint NOT NULL
)
""",
    """
CREATE TABLE {documents} (
    document_id text COLLATE "C" PRIMARY KEY,
    org_id text NOT NULL,
    source text NOT NULL,
    source_uri text NOT NULL,
    title text NOT NULL,
    fencing_token bigint NOT NULL,
    chunkset_hash text NOT NULL,
    n_chunks integer NOT NULL,
    n_entries integer NOT NULL,
    checksum text
)
""",
    """
CREATE TABLE {entries} (
    document_id text COLLATE "C",
    entry_id text COLLATE "C",
    chunk_id text NOT NULL,
    kind text NOT NULL,
    text text NOT NULL,
    PRIMARY KEY (document_id, entry_id)
)
""",
)

# The chunks and their vectors, apart from the rest because the dimension is the embedder's.
CREATE_CHUNKS = """
CREATE TABLE {chunks} (
    document_id text COLLATE "C",
    chunk_id text COLLATE "C",
    org_id text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    ordinal integer NOT NULL,
    text text NOT NULL,
    start_char bigint NOT NULL,
    end_char bigint NOT NULL,
    headings text[] NOT NULL,
    page integer,
    last_page integer,
    sheet text,
    first_row integer,
    last_row integer,
    fencing_token bigint NOT NULL,
    vector vector({dimension}) NOT NULL,
    checksum text,
    PRIMARY KEY (document_id, chunk_id)
)
"""

# What the second version added. Older rows have no checksum: nobody knows whether they are as they were written.
ADD_CHECKSUMS = (
    "ALTER TABLE {documents} ADD COLUMN checksum text",
    "ALTER TABLE {chunks} ADD COLUMN checksum text",
)
UPDATE_VERSION = "UPDATE {meta} SET format_version = %(format_version)s"

# Keep vectors in the rows, where a search that reads all of them finds them without a second look-up each. Measured
# with 20,000 chunks x 768: 28 ms a search, 87 ms with the vectors beside the rows.
KEEP_VECTORS_IN_ROWS = "ALTER TABLE {chunks} ALTER COLUMN vector SET STORAGE PLAIN"

# So that a tenant's or a source's search need not read everybody's chunks.
INDEX_CHUNKS = "CREATE INDEX ON {chunks} (org_id, source)"

DROP_CHUNKS = "DROP TABLE {chunks}"
DROP_TABLES = "DROP TABLE IF EXISTS {meta}, {fences}, {documents}, {entries}, {chunks}"

# Which version of this program's tables the store has, and which embedder its vectors come from.
SELECT_META = "SELECT format_version, embedder_name, embedder_version, dimension FROM {meta}"

# Record version, and embedder; there is one row.
INSERT_META = "INSERT INTO {meta} (format_version) VALUES (%(format_version)s)"
UPDATE_META = """
UPDATE {meta} SET embedder_name = %(name)s, embedder_version = %(version)s, dimension = %(dimension)s
"""

# Whether the store holds any vector at all.
HAS_CHUNKS = "SELECT EXISTS (SELECT 1 FROM {chunks})"

# Take the documents for this transaction, waiting for whoever has them, and raise the fences to our tokens. Rows
# whose fence is as high already are taken all the same.
RAISE_FENCES = """
INSERT INTO {fences} AS held (document_id, fencing_token)
SELECT document_id, fencing_token
FROM unnest(%(document_ids)s::text[], %(fencing_tokens)s::bigint[]) AS given (document_id, fencing_token)
ORDER BY document_id COLLATE "C"
ON CONFLICT (document_id) DO UPDATE SET fencing_token = excluded.fencing_token
WHERE held.fencing_token < excluded.fencing_token
"""

# The newest claim that wrote or removed each document; a statement of its own, so that it sees what we waited for.
SELECT_FENCES = "SELECT document_id, fencing_token FROM {fences} WHERE document_id = ANY(%(document_ids)s)"

# The chunk ids held of some documents.
SELECT_HELD_CHUNKS = "SELECT document_id, chunk_id FROM {chunks} WHERE document_id = ANY(%(document_ids)s)"

# The documents themselves, to compare with what shall stand there.
SELECT_DOCUMENTS = """
SELECT document_id, org_id, source, source_uri, title, fencing_token, chunkset_hash, n_chunks, n_entries
FROM {documents} WHERE document_id = ANY(%(document_ids)s)
"""

# Everything about the held chunks of some documents that may change while text and vector stay.
SELECT_PLACED_CHUNKS = """
SELECT document_id, chunk_id, org_id, source, ordinal,
       start_char, end_char, headings, page, last_page, sheet, first_row, last_row
FROM {chunks} WHERE document_id = ANY(%(document_ids)s)
"""

# The entry ids held of some documents; an entry's id is made from all it says.
SELECT_HELD_ENTRIES = "SELECT document_id, entry_id FROM {entries} WHERE document_id = ANY(%(document_ids)s)"

# The documents of which any row is left, in whichever table; fences are no part of them.
SELECT_REMAINING = """
SELECT document_id FROM {documents} WHERE document_id = ANY(%(document_ids)s)
UNION SELECT document_id FROM {chunks} WHERE document_id = ANY(%(document_ids)s)
UNION SELECT document_id FROM {entries} WHERE document_id = ANY(%(document_ids)s)
"""

# Put whole rows in.
COPY_CHUNKS = """
COPY {chunks} (document_id, chunk_id, org_id, source, ordinal, start_char, end_char, headings, page, last_page, sheet,
               first_row, last_row, text, fencing_token, vector, checksum)
FROM STDIN (FORMAT BINARY)
"""
COPY_ENTRIES = "COPY {entries} (document_id, entry_id, chunk_id, kind, text) FROM STDIN (FORMAT BINARY)"

# Put a document's own row in its place.
UPSERT_DOCUMENT = """
INSERT INTO {documents}
    (document_id, org_id, source, source_uri, title, fencing_token, chunkset_hash, n_chunks, n_entries, checksum)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (document_id) DO UPDATE SET
    org_id = excluded.org_id, source = excluded.source, source_uri = excluded.source_uri, title = excluded.title,
    fencing_token = excluded.fencing_token, chunkset_hash = excluded.chunkset_hash,
    n_chunks = excluded.n_chunks, n_entries = excluded.n_entries, checksum = excluded.checksum
"""

# Renew where a kept chunk stands; the last two values say which one.
UPDATE_PLACED_CHUNK = """
UPDATE {chunks} SET
    org_id = %s, source = %s, ordinal = %s, start_char = %s, end_char = %s, headings = %s,
    page = %s, last_page = %s, sheet = %s, first_row = %s, last_row = %s
WHERE document_id = %s AND chunk_id = %s
"""

# Take out single chunks and entries that vanished from documents that stay.
DELETE_CHUNKS = """
DELETE FROM {chunks} AS held USING unnest(%(document_ids)s::text[], %(ids)s::text[]) AS given (document_id, id)
WHERE held.document_id = given.document_id AND held.chunk_id = given.id
"""
DELETE_ENTRIES = """
DELETE FROM {entries} AS held USING unnest(%(document_ids)s::text[], %(ids)s::text[]) AS given (document_id, id)
WHERE held.document_id = given.document_id AND held.entry_id = given.id
"""

# Take out whole documents. Their fences stay.
DELETE_DOCUMENTS = "DELETE FROM {documents} WHERE document_id = ANY(%(document_ids)s)"
DELETE_CHUNKS_OF_DOCUMENTS = "DELETE FROM {chunks} WHERE document_id = ANY(%(document_ids)s)"
DELETE_ENTRIES_OF_DOCUMENTS = "DELETE FROM {entries} WHERE document_id = ANY(%(document_ids)s)"

# The nearest chunks of one tenant. The texts are fetched for the nearest only. A zero vector is near to nothing: its
# distance is not a number, and stands as 1. A filter that is NULL vanishes when the statement is planned.
SEARCH = """
WITH nearest AS MATERIALIZED (
    SELECT document_id, chunk_id,
           1 - coalesce(nullif(vector <=> %(vector)s::vector, 'NaN'::float8), 1) AS score
    FROM {chunks}
    WHERE org_id = %(org_id)s
      AND (%(document_id)s::text IS NULL OR document_id = %(document_id)s::text)
      AND (%(source)s::text IS NULL OR source = %(source)s::text)
    ORDER BY score DESC, document_id, chunk_id
    LIMIT %(k)s
)
SELECT nearest.score, nearest.document_id, documents.source_uri, documents.title, nearest.chunk_id, chunks.text,
       start_char, end_char, headings, page, last_page, sheet, first_row, last_row
FROM nearest
JOIN {chunks} AS chunks ON chunks.document_id = nearest.document_id AND chunks.chunk_id = nearest.chunk_id
JOIN {documents} AS documents ON documents.document_id = nearest.document_id
ORDER BY nearest.score DESC, nearest.document_id, nearest.chunk_id
"""

# A page of what is really there: the rows are counted, the numbers in the documents' own rows are not believed.
SELECT_HELD_DOCUMENTS = """
SELECT document_id, chunkset_hash,
       (SELECT count(*) FROM {chunks} AS chunks WHERE chunks.document_id = page.document_id),
       (SELECT count(*) FROM {entries} AS entries WHERE entries.document_id = page.document_id)
FROM {documents} AS page
WHERE document_id > %(after)s
ORDER BY document_id
LIMIT %(limit)s
"""

# Whether the tables have checksums; those of the first version have none.
HAS_CHECKSUMS = "SELECT format_version > 1 FROM {meta}"

# All rows of some documents, whole, and the same where there are no checksums. A vector goes as bytes in the
# extension's own format.
SELECT_CONTENT_DOCUMENTS = """
SELECT document_id, org_id, source, source_uri, title, fencing_token, chunkset_hash, n_chunks, n_entries, checksum
FROM {documents} WHERE document_id = ANY(%(document_ids)s)
"""
SELECT_CONTENT_CHUNKS = """
SELECT document_id, chunk_id, text, fencing_token, vector_send(vector), checksum, org_id, source, ordinal,
       start_char, end_char, headings, page, last_page, sheet, first_row, last_row
FROM {chunks} WHERE document_id = ANY(%(document_ids)s)
"""
SELECT_UNCHECKED_DOCUMENTS = SELECT_CONTENT_DOCUMENTS.replace("checksum", "NULL")
SELECT_UNCHECKED_CHUNKS = SELECT_CONTENT_CHUNKS.replace("checksum", "NULL")
SELECT_CONTENT_ENTRIES = """
SELECT document_id, entry_id, chunk_id, kind, text FROM {entries} WHERE document_id = ANY(%(document_ids)s)
"""

# A page of the documents that any row names.
SELECT_HELD_IDS = """
SELECT document_id FROM (
    SELECT document_id FROM {documents} UNION SELECT document_id FROM {chunks} UNION SELECT document_id FROM {entries}
) AS named WHERE document_id > %(after)s ORDER BY document_id LIMIT %(limit)s
"""
