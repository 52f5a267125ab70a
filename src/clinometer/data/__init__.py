"""Word lists, occupations and templates with a source card each, and strict readers for the user's own files."""

from clinometer.data.attitude_words import RATINGS, Rating, load_attitudes, read_attitudes
from clinometer.data.card import Card, load_card
from clinometer.data.emotions import EMOTIONS, EmotionLexicon, Lexicon, load_emotions, read_emotions
from clinometer.data.evaluation_templates import frame_finder, template_finder
from clinometer.data.fairness import ATTRIBUTES, Attribute, Value, fill_template, load_attribute, read_attribute
from clinometer.data.files import packaged, read_text
from clinometer.data.human_stereotypes import GroupMatch, HumanStereotype, match_groups, read_human_stereotypes
from clinometer.data.knowledge import Kind, Sentences, load_sentences, read_sentences
from clinometer.data.occupations import Gender, Occupation, load_occupations, read_occupations
from clinometer.data.sensitive import SensitiveSentence, SensitiveSentences, sensitive_sentences
from clinometer.data.sentences import split_sentences
from clinometer.data.social_groups import (
    Group,
    GroupKind,
    Templates,
    load_groups,
    load_templates,
    read_groups,
    read_templates,
)
from clinometer.data.stigma_conditions import (
    CATEGORIES,
    Condition,
    load_conditions,
    read_conditions,
    read_published_conditions,
)
from clinometer.data.stigma_prompts import (
    BleachedPrompt,
    Prompts,
    ScaleQuestion,
    SocialPrompt,
    fill_prompt,
    load_prompts,
    read_prompts,
)
from clinometer.data.substitution import Mention, counterfactual, find_values, first_mention
from clinometer.data.tables import CsvRow, check_keys, read_csv, read_toml
from clinometer.data.verbalizer import Verbalizer, load_verbalizer, read_verbalizer

__all__ = [
    "ATTRIBUTES",
    "CATEGORIES",
    "EMOTIONS",
    "RATINGS",
    "Attribute",
    "BleachedPrompt",
    "Card",
    "Condition",
    "CsvRow",
    "EmotionLexicon",
    "Gender",
    "Group",
    "GroupKind",
    "GroupMatch",
    "HumanStereotype",
    "Kind",
    "Lexicon",
    "Mention",
    "Occupation",
    "Prompts",
    "Rating",
    "ScaleQuestion",
    "SensitiveSentence",
    "SensitiveSentences",
    "Sentences",
    "SocialPrompt",
    "Templates",
    "Value",
    "Verbalizer",
    "check_keys",
    "counterfactual",
    "fill_prompt",
    "fill_template",
    "find_values",
    "first_mention",
    "frame_finder",
    "load_attitudes",
    "load_attribute",
    "load_card",
    "load_conditions",
    "load_emotions",
    "load_groups",
    "load_occupations",
    "load_prompts",
    "load_sentences",
    "load_templates",
    "load_verbalizer",
    "match_groups",
    "packaged",
    "read_attitudes",
    "read_attribute",
    "read_conditions",
    "read_csv",
    "read_emotions",
    "read_groups",
    "read_human_stereotypes",
    "read_occupations",
    "read_prompts",
    "read_published_conditions",
    "read_sentences",
    "read_templates",
    "read_text",
    "read_toml",
    "read_verbalizer",
    "sensitive_sentences",
    "split_sentences",
    "template_finder",
]
