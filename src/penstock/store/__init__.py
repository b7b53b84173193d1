"""The only place that speaks SQL or Lua. `open_store(url)` gives one."""
