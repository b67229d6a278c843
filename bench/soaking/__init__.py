"""The parts of `bench.soak`: what runs, who calls it, what is counted, and the verdict."""
