-- What extensions have here: their version lines, and the columns of their tables.

-- name: extension_version
SELECT value FROM penstock_meta WHERE name = :name;

-- name: extension_versions
SELECT name, value FROM penstock_meta WHERE name LIKE 'extension:%' ORDER BY name;

-- name: table_columns
-- Those that the server works out by itself are not written.
SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = to_regclass(?) AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
ORDER BY attnum;

-- name: table_names
SELECT relname::text FROM pg_class
WHERE relkind IN ('r', 'p') AND NOT relispartition
  AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema());

-- name: tables_to_scrub
-- The tables that hold rows, partitions included, whether they are ours, and their bytes.
SELECT relname::text, pg_has_role(relowner, 'USAGE'), pg_total_relation_size(oid) FROM pg_class
WHERE relkind = 'r' AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = :schema)
ORDER BY relname;

-- name: numbered_columns
-- True for those whose numbers only the server may give, unless told otherwise.
SELECT attname::text, attidentity = 'a' FROM pg_attribute
WHERE attrelid = to_regclass(:table) AND attnum > 0 AND NOT attisdropped
  AND pg_get_serial_sequence(:table, attname::text) IS NOT NULL;

-- name: advance_sequence
-- Never back: others may have taken numbers meanwhile.
SELECT setval(seqrelid, :number) FROM pg_sequence
WHERE seqrelid = pg_get_serial_sequence(:table, :column)::regclass AND seqincrement > 0
  AND :number > coalesce(pg_sequence_last_value(seqrelid), 0);

-- name: neutral_times
SELECT set_config('TimeZone', 'UTC', true), set_config('DateStyle', 'ISO, YMD', true),
    set_config('IntervalStyle', 'postgres', true);
