-- What people, models and tools wrote, sanitised. Only a hook or an import writes here, and a
-- redaction takes more out; what is derived from it is made by consumers. Times are UTC
-- milliseconds, metadata is JSON.

CREATE TABLE recorder_messages (
    -- Numbers a row for the index of its words; the id is what it is known by.
    n               INTEGER PRIMARY KEY,
    id              TEXT NOT NULL UNIQUE,
    tenant_id       TEXT NOT NULL,
    person          TEXT,
    conversation_id TEXT NOT NULL,
    platform        TEXT NOT NULL,
    session_id      TEXT NOT NULL,
    event_id        TEXT NOT NULL,
    role            TEXT NOT NULL,
    content         TEXT NOT NULL,
    content_hash    TEXT NOT NULL,
    sequence        INTEGER NOT NULL,
    created_at      BIGINT NOT NULL,
    token_count     INTEGER,
    validated       TEXT,
    metadata        TEXT NOT NULL,
    UNIQUE (conversation_id, sequence)
);
CREATE INDEX recorder_messages_event ON recorder_messages (event_id);
-- The rules, by their version, under which the validation job has looked at it; NULL while it waits.
CREATE INDEX recorder_messages_unvalidated ON recorder_messages (conversation_id)
    WHERE validated IS NULL;

-- The words of messages, whose text stands where it is; of a very long one, the first 20,000
-- characters. What is deleted or redacted leaves the index at once, not only when it is merged.
CREATE VIRTUAL TABLE recorder_words USING fts5(
    content, content = 'recorder_messages', content_rowid = 'n',
    tokenize = 'unicode61 remove_diacritics 2'
);
INSERT INTO recorder_words (recorder_words, rank) VALUES ('secure-delete', 1);
CREATE TRIGGER recorder_words_added AFTER INSERT ON recorder_messages BEGIN
    INSERT INTO recorder_words (rowid, content) VALUES (new.n, substr(new.content, 1, 20000));
END;
CREATE TRIGGER recorder_words_changed AFTER UPDATE OF n, content ON recorder_messages BEGIN
    INSERT INTO recorder_words (recorder_words, rowid, content)
    VALUES ('delete', old.n, substr(old.content, 1, 20000));
    INSERT INTO recorder_words (rowid, content) VALUES (new.n, substr(new.content, 1, 20000));
END;
CREATE TRIGGER recorder_words_removed AFTER DELETE ON recorder_messages BEGIN
    INSERT INTO recorder_words (recorder_words, rowid, content)
    VALUES ('delete', old.n, substr(old.content, 1, 20000));
END;

-- What was taken out, by rule, never the value: the hash is keyed.
CREATE TABLE recorder_redactions (
    id                    TEXT PRIMARY KEY,
    tenant_id             TEXT NOT NULL,
    conversation_id       TEXT NOT NULL,
    message_id            TEXT,
    event_id              TEXT,
    category              TEXT NOT NULL,
    rule_id               TEXT NOT NULL,
    original_snippet_hash TEXT NOT NULL,
    replacement           TEXT NOT NULL,
    detector              TEXT NOT NULL,
    confidence            DOUBLE PRECISION NOT NULL,
    created_at            BIGINT NOT NULL,
    metadata              TEXT NOT NULL
);
CREATE INDEX recorder_redactions_conversation ON recorder_redactions (conversation_id);
CREATE INDEX recorder_redactions_time ON recorder_redactions (created_at);

-- The names under which other tools of this kind know them.
CREATE VIEW sanitization_log AS SELECT * FROM recorder_redactions;
CREATE VIEW messages AS SELECT * FROM recorder_messages;
