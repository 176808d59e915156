"""The figures, one module each: SWEEP, rows(run) for the CSV, draw(frame)."""
