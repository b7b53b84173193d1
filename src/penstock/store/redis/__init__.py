"""The store on Redis or Valkey: every transition is one Lua script."""
