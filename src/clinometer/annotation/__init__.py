"""Judgements by people: sheets that raters fill in, how far raters agree, and the merged list."""
