-- The words of learnings. What is deleted is gone from the index, too.
CREATE VIRTUAL TABLE recorder_learning_words USING fts5 (
    id UNINDEXED, title, content, tags, tokenize = 'porter unicode61'
);
INSERT INTO recorder_learning_words (recorder_learning_words, rank) VALUES ('secure-delete', 1);

CREATE TRIGGER recorder_learnings_added AFTER INSERT ON recorder_learnings BEGIN
    INSERT INTO recorder_learning_words (id, title, content, tags)
    VALUES (new.id, new.title, new.content, new.tags);
END;
CREATE TRIGGER recorder_learnings_removed AFTER DELETE ON recorder_learnings BEGIN
    DELETE FROM recorder_learning_words WHERE id = old.id;
END;
CREATE TRIGGER recorder_learnings_changed
AFTER UPDATE OF id, title, content, tags ON recorder_learnings BEGIN
    DELETE FROM recorder_learning_words WHERE id = old.id;
    INSERT INTO recorder_learning_words (id, title, content, tags)
    VALUES (new.id, new.title, new.content, new.tags);
END;

-- The names under which other tools of this kind know them.
CREATE VIEW learnings AS SELECT * FROM recorder_learnings;
CREATE VIEW uploads AS SELECT * FROM recorder_uploads;
CREATE VIEW revocations AS SELECT * FROM recorder_revocations;
