"""The application's side: registering job types, enqueueing, finding, cancelling."""
