"""What an operator does, one file per kind of thing; all of it goes to the audit log first."""
