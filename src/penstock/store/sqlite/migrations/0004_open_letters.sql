-- A dead letter is open until it is resolved or ignored. In the order of seq, so that the newest is
-- found without a look at those that are closed; with the resolution, so that they are counted
-- without a look at any.

DROP INDEX dead_letter_jobs_open;
CREATE INDEX dead_letter_jobs_open ON dead_letter_jobs (seq, resolution)
    WHERE resolution IN ('pending', 'investigating');
CREATE INDEX dead_letter_jobs_open_type ON dead_letter_jobs (type, seq, resolution)
    WHERE resolution IN ('pending', 'investigating');

-- What is pruned of those that are closed.

CREATE INDEX dead_letter_jobs_closed ON dead_letter_jobs (resolved_at)
    WHERE resolution IN ('resolved', 'ignored');

-- All that a group of alike letters is counted from.

DROP INDEX dead_letter_jobs_group;
CREATE INDEX dead_letter_jobs_group
    ON dead_letter_jobs (fingerprint, type, seq, resolution, created_at, tenant_id);
