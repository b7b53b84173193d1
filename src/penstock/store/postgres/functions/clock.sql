-- Times as the rest of penstock has them: UTC milliseconds.

CREATE OR REPLACE FUNCTION {schema}.ms(moment timestamptz) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
-- By way of UTC, because the epoch of a timestamptz counts as dependent on the time zone.
RETURN (date_part('epoch', moment AT TIME ZONE 'UTC') * 1000)::bigint;
COMMENT ON FUNCTION {schema}.ms IS 'A time as UTC milliseconds, as the rest of penstock has it.';

CREATE OR REPLACE FUNCTION {schema}.at(ms bigint) RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN to_timestamp(ms / 1000::double precision);
COMMENT ON FUNCTION {schema}.at IS 'The time that UTC milliseconds stand for.';

CREATE OR REPLACE FUNCTION {schema}.clock_ms() RETURNS bigint
LANGUAGE sql VOLATILE
RETURN floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint;
COMMENT ON FUNCTION {schema}.clock_ms IS 'The time by the server''s clock, as UTC milliseconds.';
