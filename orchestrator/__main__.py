"""`python -m orchestrator` is `toolwright`."""

from orchestrator.cli.entry import main

if __name__ == "__main__":
    main()
