-- What was learned from conversations. A row is made and changed by events alone, each of them
-- applied once, in their order: `revision` is the sequence of the last one. Times are UTC
-- milliseconds; lists and metadata are JSON.
CREATE TABLE recorder_learnings (
    id                 TEXT PRIMARY KEY,
    tenant_id          TEXT NOT NULL,
    person             TEXT,
    conversation_id    TEXT NOT NULL,
    platform           TEXT NOT NULL,
    session_id         TEXT NOT NULL,
    source_message_ids TEXT NOT NULL,
    category           TEXT NOT NULL,
    title              TEXT NOT NULL,
    content            TEXT NOT NULL,
    confidence         DOUBLE PRECISION NOT NULL,
    tags               TEXT NOT NULL,
    dedupe_hash        TEXT NOT NULL,
    status             TEXT NOT NULL,
    source             TEXT NOT NULL,
    superseded_by      TEXT,
    created_at         BIGINT NOT NULL,
    edited_at          BIGINT,
    decided_by         TEXT,
    decided_at         BIGINT,
    revision           BIGINT NOT NULL,
    metadata           TEXT NOT NULL,
    UNIQUE (tenant_id, dedupe_hash)
);
CREATE INDEX recorder_learnings_time ON recorder_learnings (created_at, id);
CREATE INDEX recorder_learnings_conversation ON recorder_learnings (conversation_id);
CREATE INDEX recorder_learnings_category ON recorder_learnings (category, created_at);

-- Which versions of a conversation were looked through, and what came of it.
CREATE TABLE recorder_extractions (
    conversation_id TEXT NOT NULL,
    version         TEXT NOT NULL,
    tenant_id       TEXT NOT NULL,
    person          TEXT,
    outcome         TEXT NOT NULL,
    value           DOUBLE PRECISION NOT NULL,
    learnings       INTEGER NOT NULL,
    source          TEXT NOT NULL,
    extracted_at    BIGINT NOT NULL,
    PRIMARY KEY (conversation_id, version)
);

-- Conversations that are to be looked through once they are complete: when they have ended, or
-- nothing was heard of them for a while, and all of their messages are validated.
CREATE TABLE recorder_due (
    conversation_id TEXT PRIMARY KEY,
    tenant_id       TEXT NOT NULL,
    person          TEXT,
    platform        TEXT NOT NULL,
    session_id      TEXT NOT NULL,
    ended_at        BIGINT,
    look_at         BIGINT NOT NULL,
    -- The job that validates its messages, and until when nobody else does.
    validated_by    TEXT,
    held_until      BIGINT
);
CREATE INDEX recorder_due_time ON recorder_due (look_at);

-- How far the publishing of a learning has come. What was signed is here before it is sent, so
-- that whoever goes on after a crash sends the same bytes again.
CREATE TABLE recorder_uploads (
    id            TEXT PRIMARY KEY,
    tenant_id     TEXT NOT NULL,
    person        TEXT,
    learning_id   TEXT NOT NULL UNIQUE,
    status        TEXT NOT NULL,
    document      TEXT,
    ipfs_cid      TEXT,
    chain_tx_hash TEXT,
    chain_id      BIGINT,
    contract      TEXT,
    sender        TEXT,
    nonce         BIGINT,
    raw_tx        TEXT,
    hashes        TEXT NOT NULL,
    max_fee       TEXT,
    priority_fee  TEXT,
    block_number  BIGINT,
    block_hash    TEXT,
    retries       INTEGER NOT NULL,
    max_retries   INTEGER NOT NULL,
    last_error    TEXT,
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL,
    uploaded_at   BIGINT,
    submitted_at  BIGINT,
    confirmed_at  BIGINT
);

-- The next nonce of each sender, so that two uploads never sign the same one.
CREATE TABLE recorder_senders (
    chain_id   BIGINT NOT NULL,
    address    TEXT NOT NULL,
    next_nonce BIGINT NOT NULL,
    PRIMARY KEY (chain_id, address)
);

CREATE TABLE recorder_revocations (
    id          TEXT PRIMARY KEY,
    tenant_id   TEXT NOT NULL,
    learning_id TEXT NOT NULL UNIQUE,
    ipfs_cid    TEXT,
    reason      TEXT NOT NULL,
    revoked_by  TEXT,
    revoked_at  BIGINT NOT NULL,
    unpinned_at BIGINT
);

-- What our own calls of models cost. A call is `reserved` at its most before it is made, so that
-- calls at the same time keep within a budget together, and `spent` or `failed` afterwards.
CREATE TABLE recorder_costs (
    id              TEXT PRIMARY KEY,
    tenant_id       TEXT NOT NULL,
    person          TEXT,
    conversation_id TEXT,
    purpose         TEXT NOT NULL,
    model           TEXT NOT NULL,
    state           TEXT NOT NULL,
    input_tokens    BIGINT NOT NULL,
    output_tokens   BIGINT NOT NULL,
    cost            DOUBLE PRECISION,
    duration_ms     BIGINT,
    created_at      BIGINT NOT NULL
);
CREATE INDEX recorder_costs_time ON recorder_costs (created_at);
CREATE INDEX recorder_costs_conversation ON recorder_costs (conversation_id);
