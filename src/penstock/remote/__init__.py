"""An application's methods through a server, for processes without access to the store."""
