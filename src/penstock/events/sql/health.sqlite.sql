-- name: log_bytes
-- The file as a whole; what a log alone takes SQLite does not tell without reading all of it.
SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size();

-- name: log_file
SELECT nullif(file, '') FROM pragma_database_list WHERE name = 'main';
