"""The half written by somebody who had not seen the rules."""
