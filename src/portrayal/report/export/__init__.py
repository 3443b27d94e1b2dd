"""What papers, model cards and other programs take from results: tables, charts and citations as files."""
