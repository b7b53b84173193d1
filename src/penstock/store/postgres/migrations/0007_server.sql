-- The server: small documents (tokens, users, sessions, alerts) and the audit log, which 0002 reserved
-- and nobody wrote.

CREATE TABLE {schema}.records (
    revision   bigint NOT NULL,
    updated_at timestamptz NOT NULL,
    expires_at timestamptz,
    kind       text COLLATE "C" NOT NULL,
    name       text COLLATE "C" NOT NULL,
    document   json NOT NULL,
    PRIMARY KEY (kind, name)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_cost_delay = 0);
CREATE INDEX records_expiring ON {schema}.records (expires_at) WHERE expires_at IS NOT NULL;
COMMENT ON TABLE {schema}.records IS 'Small documents of the server: who may enter, which alerts stand.';
COMMENT ON COLUMN {schema}.records.revision IS 'Grows with every change of the record.';
COMMENT ON COLUMN {schema}.records.updated_at IS 'When the record last changed.';
COMMENT ON COLUMN {schema}.records.expires_at IS 'When the record stops being there; empty for never.';
COMMENT ON COLUMN {schema}.records.kind IS 'What sort of record it is.';
COMMENT ON COLUMN {schema}.records.name IS 'The record''s name among those of its kind.';
COMMENT ON COLUMN {schema}.records.document IS 'What is kept.';

-- The details are text, byte for byte what the hash was made of.
DROP TABLE {schema}.audit_log;
CREATE TABLE {schema}.audit_log (
    seq       bigint PRIMARY KEY,
    at        timestamptz NOT NULL,
    actor     text COLLATE "C" NOT NULL,
    action    text COLLATE "C" NOT NULL,
    subject   text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    details   text NOT NULL,
    previous  text COLLATE "C" NOT NULL,
    hash      text COLLATE "C" NOT NULL
);
COMMENT ON TABLE {schema}.audit_log IS 'Who changed what; each row carries the hash of the one before.';
COMMENT ON COLUMN {schema}.audit_log.seq IS 'The place in the chain, counted from 1 without gaps.';
COMMENT ON COLUMN {schema}.audit_log.at IS 'When.';
COMMENT ON COLUMN {schema}.audit_log.actor IS 'Who.';
COMMENT ON COLUMN {schema}.audit_log.action IS 'What was done.';
COMMENT ON COLUMN {schema}.audit_log.subject IS 'To what.';
COMMENT ON COLUMN {schema}.audit_log.tenant_id IS 'Whose it was; empty where there are no tenants.';
COMMENT ON COLUMN {schema}.audit_log.details IS 'What else there is to say, as a JSON object.';
COMMENT ON COLUMN {schema}.audit_log.previous IS 'The hash of the row before.';
COMMENT ON COLUMN {schema}.audit_log.hash IS 'The hash of this row.';

-- In the order they are listed in, so that a page of many children costs no more than one of few.
DROP INDEX {schema}.jobs_live_children;
CREATE INDEX jobs_live_children ON {schema}.jobs_live (parent_job_id, id)
    WHERE parent_job_id IS NOT NULL;
DROP INDEX {schema}.jobs_ended_children;
CREATE INDEX jobs_ended_children ON {schema}.jobs_ended (parent_job_id, id)
    WHERE parent_job_id IS NOT NULL;
