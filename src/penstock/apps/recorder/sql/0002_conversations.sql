-- The step of conversations takes this place.
SELECT 1;
