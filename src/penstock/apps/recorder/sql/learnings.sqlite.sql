-- part: found_learnings
l.id IN (SELECT id FROM recorder_learning_words WHERE recorder_learning_words MATCH :words)
