-- PostgreSQL indexes the words of many messages at once without being told to.
SELECT 1;
