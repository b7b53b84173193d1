"""What is learned from sessions: trajectories, patterns, and a classifier that forgets little."""
