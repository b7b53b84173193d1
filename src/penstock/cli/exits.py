"""Exit codes, for scripts."""

OK = 0
FAILED = 1  # a check failed, or the job that was waited for did
WRONG = 2  # wrong input, or anything penstock refuses with a sentence
NOT_FOUND = 3  # the job, dead letter or file that was named does not exist
BUG = 70  # an error penstock did not foresee
INTERRUPTED = 130
