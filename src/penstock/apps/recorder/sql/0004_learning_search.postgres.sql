-- The words of learnings.
CREATE INDEX recorder_learnings_words ON recorder_learnings
    USING gin (to_tsvector('english', title || ' ' || content || ' ' || tags));

-- The names under which other tools of this kind know them; they show each tenant its own rows.
CREATE VIEW learnings WITH (security_invoker = true) AS SELECT * FROM recorder_learnings;
CREATE VIEW uploads WITH (security_invoker = true) AS SELECT * FROM recorder_uploads;
CREATE VIEW revocations WITH (security_invoker = true) AS SELECT * FROM recorder_revocations;
ALTER VIEW messages SET (security_invoker = true);
ALTER VIEW sanitization_log SET (security_invoker = true);
