"""Events: things that happened, appended to a log from which everything else can be derived."""
