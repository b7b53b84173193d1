-- name: hold
-- One writer at a time has the file.
SELECT 1;

-- name: begin
-- The last sequence that was given, and when the last archived event was.
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events_log'), 0),
    {part archived_until};

-- part: among
(:types IS NULL OR instr(:types, ' ' || event_type || ' ') > 0)
