-- What one person did, what was done to one thing and what concerns one tenant, newest first, without
-- a look at the rest of the log.

CREATE INDEX audit_log_actor ON {schema}.audit_log (actor, seq);
CREATE INDEX audit_log_subject ON {schema}.audit_log (subject, seq);
CREATE INDEX audit_log_tenant ON {schema}.audit_log (tenant_id, seq);
