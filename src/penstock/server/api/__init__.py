"""The REST API, one file per resource; `models` has the documents it takes and gives."""
