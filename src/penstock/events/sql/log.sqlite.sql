-- name: begin
-- The last sequence that was given: one writer at a time has the file, and gives those after it.
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events_log'), 0),
    {part archived_until};

-- part: among
(:types IS NULL OR instr(:types, ' ' || event_type || ' ') > 0)
