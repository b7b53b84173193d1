-- name: make_month
SELECT events_make_month(?);

-- name: drop_month
SELECT events_drop_month(?);
