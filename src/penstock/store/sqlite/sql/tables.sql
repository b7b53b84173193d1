-- What extensions have here: their version lines, and the columns of their tables.

-- name: extension_version
SELECT value FROM penstock_meta WHERE name = ?;

-- name: extension_versions
SELECT name, value FROM penstock_meta WHERE name LIKE 'extension:%' ORDER BY name;

-- name: remember_extension
INSERT INTO penstock_meta (name, value) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: table_columns
SELECT name, type FROM pragma_table_info(?) ORDER BY cid;

-- name: table_names
-- Without those that SQLite keeps for itself.
SELECT name FROM pragma_table_list
WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!';
