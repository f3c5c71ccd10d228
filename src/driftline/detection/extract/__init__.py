"""From the bytes of a response to the text that is compared: charset, visible text, regions, filters, formats."""
