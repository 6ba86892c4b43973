"""The model families, and what they share: configuration, construction, loading, saving, outputs."""
