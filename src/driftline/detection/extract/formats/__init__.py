"""Documents that are not HTML, as lines of text: JSON, XML and feeds, CSV, PDF."""
