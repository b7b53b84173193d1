"""`penstock top`: the store at work, live, on a whole terminal."""
