"""Which words that people call neutral does the model take for positive or negative?"""

from clinometer.probes.sentiment_words.options import Options
from clinometer.probes.sentiment_words.probe import PROBE, SentimentWords

__all__ = ["PROBE", "Options", "SentimentWords"]
