-- For how long sessions are kept: all of them, those of a project, or one. The narrowest rule
-- counts; without days, for ever.

CREATE TABLE recorder_retention (
    tenant_id TEXT NOT NULL,
    scope     TEXT NOT NULL,
    name      TEXT NOT NULL,
    days      INTEGER,
    set_by    TEXT NOT NULL,
    set_at    BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, scope, name)
);
