-- part: numbers
(SELECT value FROM json_each(:numbers))

-- part: ids
(SELECT value FROM json_each(:ids))
