"""How fast pacbound is and how much memory it takes, against its peers: `python -m benchmarks` (or
`make bench`)."""
