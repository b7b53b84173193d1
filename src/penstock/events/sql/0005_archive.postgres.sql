-- What left the log for files, and every file there is: it is known here before it is on disk and
-- until it is gone from there. Of a `writing` one nothing has left the log, or the store of jobs,
-- yet; the jobs of a `leaving` one are being deleted there; a `going` one is to be deleted itself.
CREATE TABLE events_archives (
    file          text COLLATE "C" PRIMARY KEY,
    subject       text NOT NULL,
    state         text NOT NULL,
    first_at      bigint NOT NULL,
    last_at       bigint NOT NULL,
    last_sequence bigint NOT NULL,
    row_count     bigint NOT NULL,
    erased_count  bigint NOT NULL,
    size          bigint NOT NULL,
    sha256        text NOT NULL,
    made_at       bigint NOT NULL
);

-- How many erasures there were, in a single row: whoever has read an event from a stream before the
-- last of them, and writes it now, first looks whether it is still there.
CREATE TABLE events_erasures (
    id       bigint PRIMARY KEY,
    happened bigint NOT NULL
);

-- Makes the table of a month, counted from this one, if it is not there; what wild times brought
-- into the table for all others goes along. Whoever leads may call it, who owns no table.
CREATE OR REPLACE FUNCTION events_make_month(months_ahead integer) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    month timestamp := date_trunc('month', now() AT TIME ZONE 'UTC')
        + make_interval(months => months_ahead);
    name text := 'events_log_' || to_char(month, 'YYYY_MM');
    low bigint := extract(epoch FROM month) * 1000;
    high bigint := extract(epoch FROM month + interval '1 month') * 1000;
BEGIN
    IF months_ahead NOT BETWEEN 0 AND 3 OR to_regclass(name) IS NOT NULL THEN
        RETURN false;
    END IF;
    -- In the order in which everybody locks them, and at once as strictly as is needed below.
    LOCK TABLE ONLY events_log IN SHARE UPDATE EXCLUSIVE MODE;
    LOCK TABLE events_log_other IN ACCESS EXCLUSIVE MODE;
    EXECUTE format('CREATE TABLE %I (LIKE events_log INCLUDING ALL)', name);
    EXECUTE format(
        'WITH moved AS (DELETE FROM events_log_other WHERE timestamp >= %s AND timestamp < %s '
        'RETURNING *) INSERT INTO %I SELECT * FROM moved', low, high, name);
    EXECUTE format(
        'ALTER TABLE events_log ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', name, low, high);
    RETURN true;
END $$;
REVOKE EXECUTE ON FUNCTION events_make_month FROM PUBLIC;

-- Drops the table of a month that has passed and whose rows are all archived; not while somebody
-- has been reading the log for long, whom everybody would wait for.
CREATE OR REPLACE FUNCTION events_drop_month(moment bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '1s' AS $$
DECLARE
    month timestamp := date_trunc('month', to_timestamp(moment / 1000.0) AT TIME ZONE 'UTC');
    name text := 'events_log_' || to_char(month, 'YYYY_MM');
    filled boolean;
BEGIN
    IF to_regclass(name) IS NULL OR month >= date_trunc('month', now() AT TIME ZONE 'UTC') THEN
        RETURN false;
    END IF;
    LOCK TABLE ONLY events_log IN ACCESS EXCLUSIVE MODE;
    EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', name);
    EXECUTE format('SELECT EXISTS (SELECT FROM %I)', name) INTO filled;
    IF NOT filled THEN
        EXECUTE format('DROP TABLE %I', name);
    END IF;
    RETURN NOT filled;
EXCEPTION WHEN lock_not_available THEN
    RETURN false;
END $$;
REVOKE EXECUTE ON FUNCTION events_drop_month FROM PUBLIC;
