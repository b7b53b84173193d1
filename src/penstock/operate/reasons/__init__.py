"""The reasons a job has to run or wait, each found in what a store knows of it."""
