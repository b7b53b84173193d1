-- A dead letter is open until it is resolved or ignored. In the order of seq, so that the newest is
-- found without a look at those that are closed.

DROP INDEX {schema}.dead_letter_jobs_open;
CREATE INDEX dead_letter_jobs_open ON {schema}.dead_letter_jobs (seq)
    WHERE resolution IN ('pending', 'investigating');
CREATE INDEX dead_letter_jobs_open_type ON {schema}.dead_letter_jobs (type, seq)
    WHERE resolution IN ('pending', 'investigating');

-- What is pruned of those that are closed.

CREATE INDEX dead_letter_jobs_closed ON {schema}.dead_letter_jobs (resolved_at)
    WHERE resolution IN ('resolved', 'ignored');

-- All that a group of alike letters is counted from.

DROP INDEX {schema}.dead_letter_jobs_group;
CREATE INDEX dead_letter_jobs_group ON {schema}.dead_letter_jobs (fingerprint, type, seq)
    INCLUDE (resolution, created_at, tenant_id);
