"""`python -m penstock.cli` is the command `penstock`."""

from penstock.cli.program import main

if __name__ == "__main__":
    main()
