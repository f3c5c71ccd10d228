"""Documents that are not HTML, as lines that read well: JSON, XML and feeds, tables, PDF."""
