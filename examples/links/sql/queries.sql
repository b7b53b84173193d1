-- name: add
INSERT INTO links_links (tenant, url, owner) VALUES (?, ?, ?) ON CONFLICT DO NOTHING;

-- name: all
SELECT url, owner, state, checked_at FROM links_links
WHERE CAST(:tenant AS TEXT) IS NULL OR tenant = :tenant ORDER BY url LIMIT 1000;

-- name: checked
UPDATE links_links SET state = ?, checked_at = ? WHERE tenant = ? AND url = ?;

-- name: stale
SELECT tenant, url FROM links_links WHERE checked_at < ? ORDER BY checked_at LIMIT 1000;

-- name: states
SELECT state, count(*) FROM links_links GROUP BY state;
