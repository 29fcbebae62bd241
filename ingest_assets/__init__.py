"""What a run makes: the Dagster definitions, the engine behind them, and the command line."""
