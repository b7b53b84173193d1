-- name: row
SELECT events, amount, chain FROM tally_sessions WHERE name = ? AND session = ?;

-- name: add
INSERT INTO tally_sessions (name, session, events, amount, chain) VALUES (?, ?, 1, ?, ?)
ON CONFLICT (name, session) DO UPDATE SET events = tally_sessions.events + 1,
    amount = tally_sessions.amount + excluded.amount, chain = excluded.chain;

-- name: drop
DELETE FROM tally_sessions WHERE name = ? AND session = ?;

-- name: all
SELECT session, events, amount, chain FROM tally_sessions WHERE name = ? ORDER BY session;
