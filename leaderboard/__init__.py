"""Front of house: tables, statistics, pages."""
