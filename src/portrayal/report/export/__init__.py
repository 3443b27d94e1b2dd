"""Exports for papers, model cards and programs: tables, charts and citations as files."""
