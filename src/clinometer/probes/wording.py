"""Small rules of English and of templates; they live in the data room, where files are filled in as well."""

from clinometer.data.wording import fill_fields, with_article

__all__ = ["fill_fields", "with_article"]
