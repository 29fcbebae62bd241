"""Every statement the DuckDB store sends, each with the sentence that says what it is for.

Values are always bound. The one thing put into a statement's text is the vectors' dimension, an integer, because a
type cannot be bound: `{dimension}`, filled in by `with_dimension`. Names like `given_chunks` are Arrow tables that are
registered for the one statement.

No table has a key or an index: they make inserts several times slower and files larger, and the lock on the file
already makes every reader and writer see whole transactions only.
"""

# The second version added the checksums; the first is brought up by the first write.
SCHEMA_VERSION = 2

# The shape of a store's file, made once.
CREATE_TABLES = (
    """
CREATE TABLE store_meta (
    schema_version INTEGER NOT NULL,
    embedder_name VARCHAR,
    embedder_version VARCHAR,
    dimension INTEGER
)
""",
    """
CREATE TABLE documents (
    document_id VARCHAR NOT NULL,
    org_id VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    source_uri VARCHAR NOT NULL,
    title VARCHAR NOT NULL,
    fencing_token BIGINT NOT NULL,
    chunkset_hash VARCHAR NOT NULL,
    n_chunks INTEGER NOT NULL,
    n_entries INTEGER NOT NULL,
    checksum VARCHAR
)
""",
    """
CREATE TABLE removed_documents (
    document_id VARCHAR NOT NULL,
    fencing_token BIGINT NOT NULL
)
""",
    """
CREATE TABLE entries (
    entry_id VARCHAR NOT NULL,
    document_id VARCHAR NOT NULL,
    chunk_id VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    text VARCHAR NOT NULL
)
""",
)

# The chunks and their vectors, apart from the rest because the dimension is the embedder's.
#
# Texts are not compressed. Measured with 27,000 chunks of 1,000 characters of real documents, ten commits and a search
# for ten of them: 0.8 s, 53 MB, 36 ms; as DuckDB chooses 1.2 s, 36 MB, 36 ms; with zstd 1.0 s, 24 MB, 47 ms.
CREATE_CHUNKS = """
CREATE OR REPLACE TABLE chunks (
    chunk_id VARCHAR NOT NULL,
    document_id VARCHAR NOT NULL,
    org_id VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    ordinal INTEGER NOT NULL,
    text VARCHAR NOT NULL USING COMPRESSION uncompressed,
    start_char BIGINT NOT NULL,
    end_char BIGINT NOT NULL,
    headings VARCHAR[] NOT NULL,
    page INTEGER,
    last_page INTEGER,
    sheet VARCHAR,
    first_row INTEGER,
    last_row INTEGER,
    fencing_token BIGINT NOT NULL,
    vector FLOAT[{dimension}] NOT NULL,
    checksum VARCHAR
)
"""

# Which version of this program's tables the file has, and which embedder its vectors come from.
SELECT_META = "SELECT schema_version, embedder_name, embedder_version, dimension FROM store_meta"

# Record version and embedder; there is one row.
DELETE_META = "DELETE FROM store_meta"
INSERT_META = "INSERT INTO store_meta VALUES ($schema_version, $name, $version, $dimension)"

# What the second version added. Older rows have no checksum: nobody knows whether they are as they were written.
ADD_CHECKSUMS = ("ALTER TABLE documents ADD COLUMN checksum VARCHAR", "ALTER TABLE chunks ADD COLUMN checksum VARCHAR")
UPDATE_VERSION = "UPDATE store_meta SET schema_version = $schema_version"

# Whether the store holds any vector at all.
HAS_CHUNKS = "SELECT EXISTS (SELECT 1 FROM chunks)"

# The chunk ids held of some documents.
SELECT_HELD_CHUNKS = """
SELECT document_id, chunk_id FROM chunks WHERE document_id IN (SELECT unnest($document_ids))
"""

# The documents themselves, to compare with what shall stand there.
SELECT_DOCUMENTS = """
SELECT document_id, org_id, source, source_uri, title, fencing_token, chunkset_hash, n_chunks, n_entries
FROM documents WHERE document_id IN (SELECT unnest($document_ids))
"""

# The token under which documents were removed.
SELECT_REMOVED = """
SELECT document_id, fencing_token FROM removed_documents WHERE document_id IN (SELECT unnest($document_ids))
"""

# Everything about the held chunks of some documents that may change while text and vector stay.
SELECT_PLACED_CHUNKS = """
SELECT document_id, chunk_id, org_id, source, ordinal,
       start_char, end_char, headings, page, last_page, sheet, first_row, last_row
FROM chunks WHERE document_id IN (SELECT unnest($document_ids))
"""

# The entry ids held of some documents; an entry's id is made from all it says.
SELECT_HELD_ENTRIES = """
SELECT document_id, entry_id FROM entries WHERE document_id IN (SELECT unnest($document_ids))
"""

# The documents of which any row is left, in whichever table.
SELECT_REMAINING = """
WITH given AS (SELECT unnest($document_ids) AS document_id)
SELECT document_id FROM documents SEMI JOIN given USING (document_id)
UNION SELECT document_id FROM chunks SEMI JOIN given USING (document_id)
UNION SELECT document_id FROM entries SEMI JOIN given USING (document_id)
"""

# Put rows in, by name, so that the order of columns does not matter.
INSERT_DOCUMENTS = "INSERT INTO documents BY NAME SELECT * FROM given_documents"
INSERT_REMOVED = "INSERT INTO removed_documents BY NAME SELECT * FROM given_removed"
INSERT_CHUNKS = "INSERT INTO chunks BY NAME SELECT * FROM given_chunks"
INSERT_ENTRIES = "INSERT INTO entries BY NAME SELECT * FROM given_entries"

# Renew where kept chunks stand.
UPDATE_PLACED_CHUNKS = """
UPDATE chunks SET
    org_id = given.org_id, source = given.source, ordinal = given.ordinal,
    start_char = given.start_char, end_char = given.end_char, headings = given.headings,
    page = given.page, last_page = given.last_page, sheet = given.sheet,
    first_row = given.first_row, last_row = given.last_row
FROM given_chunks AS given
WHERE chunks.document_id = given.document_id AND chunks.chunk_id = given.chunk_id
"""

# Take out single chunks and entries that vanished from documents that stay.
DELETE_CHUNKS = """
DELETE FROM chunks USING given_ids AS given
WHERE chunks.document_id = given.document_id AND chunks.chunk_id = given.id
"""
DELETE_ENTRIES = """
DELETE FROM entries USING given_ids AS given
WHERE entries.document_id = given.document_id AND entries.entry_id = given.id
"""

# Take out whole documents.
DELETE_DOCUMENTS = "DELETE FROM documents WHERE document_id IN (SELECT unnest($document_ids))"
DELETE_REMOVED = "DELETE FROM removed_documents WHERE document_id IN (SELECT unnest($document_ids))"
DELETE_CHUNKS_OF_DOCUMENTS = "DELETE FROM chunks WHERE document_id IN (SELECT unnest($document_ids))"
DELETE_ENTRIES_OF_DOCUMENTS = "DELETE FROM entries WHERE document_id IN (SELECT unnest($document_ids))"

# The nearest chunks of one tenant. The texts are fetched for the nearest only. A zero vector is near to nothing: its
# cosine is not a number, and stands as 0.
SEARCH = """
WITH scored AS (
    SELECT rowid AS row_number, document_id, chunk_id,
           array_cosine_similarity(vector, CAST($vector AS FLOAT[{dimension}])) AS cosine
    FROM chunks
    WHERE org_id = $org_id
      AND ($document_id IS NULL OR document_id = $document_id)
      AND ($source IS NULL OR source = $source)
), nearest AS (
    SELECT row_number, CASE WHEN isnan(cosine) THEN 0 ELSE cosine END AS score
    FROM scored ORDER BY score DESC, document_id, chunk_id LIMIT $k
)
SELECT nearest.score, chunks.document_id, documents.source_uri, documents.title, chunks.chunk_id, chunks.text,
       start_char, end_char, headings, page, last_page, sheet, first_row, last_row
FROM nearest
JOIN chunks ON chunks.rowid = nearest.row_number
JOIN documents ON documents.document_id = chunks.document_id
ORDER BY nearest.score DESC, chunks.document_id, chunks.chunk_id
"""

# A page of what is really there: the rows are counted, the numbers in the documents' own rows are not believed.
SELECT_HELD_DOCUMENTS = """
WITH page AS (
    SELECT document_id, chunkset_hash FROM documents WHERE document_id > $after ORDER BY document_id LIMIT $limit
), chunk_counts AS (
    SELECT document_id, count(*) AS n FROM chunks SEMI JOIN page USING (document_id) GROUP BY document_id
), entry_counts AS (
    SELECT document_id, count(*) AS n FROM entries SEMI JOIN page USING (document_id) GROUP BY document_id
)
SELECT page.document_id, page.chunkset_hash, coalesce(chunk_counts.n, 0), coalesce(entry_counts.n, 0)
FROM page
LEFT JOIN chunk_counts USING (document_id)
LEFT JOIN entry_counts USING (document_id)
ORDER BY page.document_id
"""

# All rows of some documents, whole. Tables of the first version have no checksums: see `without_checksum`.
SELECT_CONTENT_DOCUMENTS = """
SELECT document_id, org_id, source, source_uri, title, fencing_token, chunkset_hash, n_chunks, n_entries, checksum
FROM documents WHERE document_id IN (SELECT unnest($document_ids))
"""
SELECT_CONTENT_CHUNKS = """
SELECT document_id, chunk_id, text, fencing_token, vector, checksum, org_id, source, ordinal,
       start_char, end_char, headings, page, last_page, sheet, first_row, last_row
FROM chunks WHERE document_id IN (SELECT unnest($document_ids))
"""
SELECT_CONTENT_ENTRIES = """
SELECT document_id, entry_id, chunk_id, kind, text
FROM entries WHERE document_id IN (SELECT unnest($document_ids))
"""

# A page of the documents that any row names.
SELECT_HELD_IDS = """
SELECT document_id FROM (
    SELECT document_id FROM documents UNION SELECT document_id FROM chunks UNION SELECT document_id FROM entries
) WHERE document_id > $after ORDER BY document_id LIMIT $limit
"""


def without_checksum(query: str) -> str:
    """The query for tables that have no checksums."""
    return query.replace("checksum", "NULL")


def with_dimension(query: str, dimension: int) -> str:
    """The query for vectors of `dimension` numbers."""
    return query.replace("{dimension}", str(int(dimension)))
