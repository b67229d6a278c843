"""`python -m orchestrator` is `toolwright`."""

from orchestrator.cli.main import main

if __name__ == "__main__":
    main()
