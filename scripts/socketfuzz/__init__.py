"""The parts of scripts/fuzz-sockets."""
