-- name: ready
SELECT * FROM ready(:lanes::integer, :jobs::integer);

-- name: ready_when
-- Whether claims must weigh gates, and when a waiting job falls due or expires.
SELECT gated(),
    (SELECT ms(min(scheduled_at)) FROM jobs_live
     WHERE status IN ('pending', 'failed') AND waiting_on = 0),
    (SELECT ms(min(expires_at)) FROM jobs_live
     WHERE expires_at IS NOT NULL AND status IN ('pending', 'queued', 'failed'));
