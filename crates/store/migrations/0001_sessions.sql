-- Sessions, their archive, their memories, and what is searched.
-- Bodies are BLOBs: what was received is given back byte for byte.

CREATE TABLE session (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    parent_id TEXT,
    parent_message_count INTEGER,
    wire TEXT NOT NULL,
    model TEXT NOT NULL,
    title TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    message_count INTEGER NOT NULL DEFAULT 0,
    tokens INTEGER NOT NULL DEFAULT 0,
    superseded_count INTEGER NOT NULL DEFAULT 0,
    memory_version INTEGER NOT NULL DEFAULT 0,
    epoch INTEGER NOT NULL DEFAULT 0,
    covered_count INTEGER NOT NULL DEFAULT 0,
    event_count INTEGER NOT NULL DEFAULT 0,
    usage_count INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX session_by_update ON session (updated_ms DESC, id);

-- Apart from the session, so that a list does not read it.
CREATE TABLE session_body (
    session INTEGER PRIMARY KEY,
    head BLOB NOT NULL,
    settings TEXT NOT NULL
) STRICT;

-- A message is stored once, however many forks begin with it.
CREATE TABLE message (
    key INTEGER PRIMARY KEY,
    digest BLOB NOT NULL,
    at_ms INTEGER,
    role TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    original BLOB NOT NULL,
    sent BLOB
) STRICT;

CREATE TABLE message_text (
    message INTEGER PRIMARY KEY,
    text TEXT NOT NULL
) STRICT;

-- Which message stands where in a session.
CREATE TABLE placement (
    session INTEGER NOT NULL,
    position INTEGER NOT NULL,
    message INTEGER NOT NULL,
    PRIMARY KEY (session, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX placement_by_message ON placement (message);

-- What was cut off by an edit, a rewind or a clear.
CREATE TABLE superseded (
    session INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    position INTEGER NOT NULL,
    superseded_ms INTEGER NOT NULL,
    message INTEGER NOT NULL,
    PRIMARY KEY (session, sequence)
) STRICT, WITHOUT ROWID;
CREATE INDEX superseded_by_message ON superseded (message);

CREATE TABLE memory (
    key INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    version INTEGER NOT NULL,
    covered_count INTEGER NOT NULL,
    digest BLOB NOT NULL,
    origin TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    json TEXT NOT NULL,
    markdown TEXT NOT NULL,
    UNIQUE (session, version)
) STRICT;

CREATE TABLE adoption (
    session INTEGER PRIMARY KEY,
    epoch INTEGER NOT NULL,
    memory_version INTEGER,
    covered_count INTEGER NOT NULL,
    state TEXT NOT NULL,
    at_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE event (
    session INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    kind TEXT NOT NULL,
    json TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (session, sequence)
) STRICT, WITHOUT ROWID;

CREATE TABLE usage (
    session INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    purpose TEXT NOT NULL,
    model TEXT NOT NULL,
    uncached INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    cache_write_long INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cost_nanodollars INTEGER,
    request_id TEXT,
    PRIMARY KEY (session, sequence)
) STRICT, WITHOUT ROWID;

-- The indexes hold folded text, three characters to a token, and only say where to look: the program looks itself.
-- Without positions (detail=none) they are a fraction of the size, and an append costs accordingly.
CREATE VIRTUAL TABLE message_search USING fts5 (
    folded, content = '', detail = none, columnsize = 0, tokenize = 'trigram case_sensitive 1'
);
CREATE VIRTUAL TABLE memory_search USING fts5 (
    folded, content = '', detail = none, columnsize = 0, tokenize = 'trigram case_sensitive 1'
);
-- What was deleted is overwritten at once and not only when segments are merged.
INSERT INTO message_search (message_search, rank) VALUES ('secure-delete', 1);
INSERT INTO memory_search (memory_search, rank) VALUES ('secure-delete', 1);
