-- name: row
SELECT events, amount, chain FROM tally_sessions WHERE name = ? AND session = ?;

-- name: put
INSERT INTO tally_sessions (name, session, events, amount, chain) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (name, session) DO UPDATE
SET events = excluded.events, amount = excluded.amount, chain = excluded.chain;

-- name: drop
DELETE FROM tally_sessions WHERE name = ? AND session = ?;

-- name: all
SELECT session, events, amount, chain FROM tally_sessions WHERE name = ? ORDER BY session;
