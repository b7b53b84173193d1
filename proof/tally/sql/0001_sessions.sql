CREATE TABLE tally_sessions (
    name    TEXT NOT NULL,
    session TEXT NOT NULL,
    events  BIGINT NOT NULL,
    amount  BIGINT NOT NULL,
    chain   TEXT NOT NULL,
    PRIMARY KEY (name, session)
);
