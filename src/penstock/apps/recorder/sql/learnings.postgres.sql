-- part: found_learnings
to_tsvector('english', l.title || ' ' || l.content || ' ' || l.tags)
    @@ to_tsquery('english', :words)
