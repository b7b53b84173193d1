-- The words of many new messages are indexed by one statement: of a row that a trigger indexes, the
-- index makes a segment of its own, and merging those takes longer than all the rest. While there
-- is a position 'words', which no commit leaves, messages after that number are not indexed yet.
DROP TRIGGER recorder_words_added;
CREATE TRIGGER recorder_words_added AFTER INSERT ON recorder_messages
WHEN NOT EXISTS (SELECT 1 FROM recorder_positions WHERE id = 'words') BEGIN
    INSERT INTO recorder_words (rowid, content) VALUES (new.n, substr(new.content, 1, 20000));
END;

-- So many bytes of words are gathered before they are written.
INSERT INTO recorder_words (recorder_words, rank) VALUES ('hashsize', 4194304);
