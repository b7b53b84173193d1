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
