"""The eighteen types of jobs as one blueprint, each with its row of the table of options."""

from penstock.app.blueprint import Blueprint

jobs = Blueprint()
