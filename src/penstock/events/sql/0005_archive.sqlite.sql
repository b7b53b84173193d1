-- What left the log for files, and every file there is: it is known here before it is on disk and
-- until it is gone from there. Of a `writing` one nothing has left the log, or the store of jobs,
-- yet; the jobs of a `leaving` one are being deleted there; a `going` one is to be deleted itself.
CREATE TABLE events_archives (
    file          TEXT PRIMARY KEY,
    subject       TEXT NOT NULL,
    state         TEXT NOT NULL,
    first_at      INTEGER NOT NULL,
    last_at       INTEGER NOT NULL,
    last_sequence INTEGER NOT NULL,
    row_count     INTEGER NOT NULL,
    erased_count  INTEGER NOT NULL,
    size          INTEGER NOT NULL,
    sha256        TEXT NOT NULL,
    made_at       INTEGER NOT NULL
) STRICT;

-- How many erasures there were, in a single row: whoever has read an event from a stream before the
-- last of them, and writes it now, first looks whether it is still there.
CREATE TABLE events_erasures (
    id       INTEGER PRIMARY KEY,
    happened INTEGER NOT NULL
) STRICT;
