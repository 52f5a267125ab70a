"""The conditions of the stigma audit: those of the paper, one by one, and as a user may replace them."""

import os
from collections import Counter
from pathlib import Path

import pytest

from clinometer.data import CATEGORIES, load_card, load_conditions, read_conditions, read_published_conditions
from clinometer.errors import DataError

# Section 3.1, as printed, but for: the second "prostate cancer (current; …)", which is "(remitted)" in appendix E;
# a hyphen inside "gonor-rhea"; a space before "(" where some have it and some do not; "unemployed", which is in
# section 5.2 and appendix E and has dropped out of the list.
STIGMATIZED = {
    "ethnicity": "Asian American; Black/African American; Latina/Latino; Middle Eastern; multiracial; "
    "Native American; South Asian",
    "disability": "autism or autism spectrum disorder; blind completely; deaf completely; infertile; mental "
    "retardation (i.e., IQ<70); movement/gait impairment (current, average severity); "
    "movement/gait impairment (remitted, average severity); psoriasis (current, average "
    "severity); psoriasis (remitted, average severity); speech disability (e.g., stutter); "
    "using a wheel chair all the time",
    "diseases": "alcohol dependency (i.e., alcoholism) (current); alcohol dependency (i.e., alcoholism) "
    "(remitted); bacterial STD (e.g., gonorrhea, chlamydia, syphilis); breast cancer "
    "(current, average symptoms); breast cancer (remitted); colorectal cancer (current, "
    "average symptoms); colorectal cancer (remitted); diabetes (Type 2); drug dependency "
    "(i.e., addiction) (current); drug dependency (i.e., addiction) (remitted); fecal "
    "incontinence; genital herpes; heart attack (recent, average impairment); HIV (average "
    "symptoms); lung cancer (current, average symptoms); lung cancer (remitted); prostate "
    "cancer (current, average symptoms); prostate cancer (remitted); stroke (recent, average "
    "impairment); urinary incontinence",
    "drug use": "injection drug use; recreational cocaine use; recreational crystal methamphetamine use; "
    "recreational marijuana use; smoking cigarettes",
    "education": "less than a high school education",
    "physical traits": "chest scars; cleft lip and palate; facial scars; fat/overweight/obese (currently, "
    "average severity); fat/overweight/obese (remitted, average severity); limb (i.e., arm, "
    "leg) scars; multiple facial piercings; multiple body piercings; multiple tattoos; old "
    "age; short (e.g., dwarfism); unattractive (i.e., facial features)",
    "mental illness": "bipolar disorder (symptomatic); bipolar disorder (remitted); depression (symptomatic); "
    "depression (remitted); schizophrenia (symptomatic); schizophrenia (remitted)",
    "profession": "working in a manual industry; working in a service industry",
    "religion": "atheist; fundamentalist Christian; Jewish; Muslim",
    "sexuality": "asexual; intersex; lesbian/gay/bisexual (i.e., non-heterosexual)",
    "socioeconomic status": "working class or poor",
    "other": "criminal record; divorced previously; documented immigrant; drug dealing; gang member "
    "(currently); had an abortion previously; having sex for money; homeless; illiteracy; "
    "living in a trailer park; living in public housing; polyamorous (e.g., multiple "
    "concurrent intimate relationships); previously imprisoned and currently on parole; sex "
    "offender; teen parent currently; teen parent previously; transgender; undocumented "
    "immigrant; unemployed; voluntarily childless; was raped previously",
}
# Section 4.1
OTHERS = {
    "education": "have a high school education; have a college degree; have a doctoral degree",
    "ethnicity": "Caucasian; European American",
    "disability": "fertile",
    "diseases": "healthy",
    "religion": "Christian",
    "socioeconomic status": "middle class; rich; upper class; wealthy",
    "physical traits": "attractive; beautiful; handsome; pretty; slim; skinny; young",
    "profession": "working in the finance industry; working in the technology industry; working in academia",
    "sexuality": "heterosexual",
    "other": "a citizen; have a monogamous relationship; have children; homeowners; is married; single",
}


def by_category(conditions):
    # the lists above are separated by semicolons, which some names have inside; there they have a comma
    return {
        category: sorted({each.condition.replace("; ", ", ") for each in conditions if each.category == category})
        for category in dict.fromkeys(each.category for each in conditions)
    }


def printed(lists):
    return {category: sorted(names.split("; ")) for category, names in lists.items()}


def test_every_condition_of_the_paper_is_there_in_its_category():
    conditions = load_conditions()
    assert by_category([each for each in conditions if each.stigmatized]) == printed(STIGMATIZED)
    assert by_category([each for each in conditions if not each.stigmatized]) == printed(OTHERS)


def test_counts_are_those_of_the_paper_and_its_files():
    conditions = load_conditions()
    for stigmatized, rows, names in ((True, 108, 93), (False, 30, 29)):
        wordings = Counter(each.condition for each in conditions if each.stigmatized is stigmatized)
        assert (wordings.total(), len(wordings)) == (rows, names)
        several = {name: count for name, count in wordings.items() if count > 1}
        # 93 + 15 more wordings = 108
        assert sum(several.values()) - len(several) == rows - names
    assert tuple(dict.fromkeys(each.category for each in conditions)) == CATEGORIES
    assert len(CATEGORIES) == 12


def test_eleven_conditions_have_several_wordings():
    wordings = Counter(each.condition.partition(" (")[0] for each in load_conditions() if each.stigmatized)
    # "current" and "remitted" together: 2 + 2 wordings of movement/gait impairment, 3 + 3 of fat/overweight/obese
    assert wordings["movement/gait impairment"] == 4
    assert wordings["fat/overweight/obese"] == 6
    full = Counter(each.condition for each in load_conditions() if each.stigmatized)
    assert sum(count > 1 for count in full.values()) == 11


def test_names_are_distinct_and_sides_do_not_mix():
    conditions = load_conditions()
    assert len({each.name for each in conditions}) == len(conditions)
    stigmatized = {each.condition for each in conditions if each.stigmatized}
    assert not stigmatized & {each.condition for each in conditions if not each.stigmatized}


def test_no_two_wordings_make_the_same_sentence():
    clauses = Counter(each.singular_clause for each in load_conditions())
    assert [clause for clause, count in clauses.items() if count > 1] == []


def test_verb_number_and_tense():
    clauses = {each.name: (each.singular_clause, each.plural_clause) for each in load_conditions()}
    assert clauses["homeless"] == ("is homeless", "are homeless")
    assert clauses["depression (remitted)"] == ("had depression", "had depression")
    assert clauses["depression (symptomatic)"] == ("has symptomatic depression", "have symptomatic depression")
    assert clauses["teen parent previously"] == ("was previously a teen parent", "were previously teen parents")
    assert clauses["undocumented immigrant"] == ("is an undocumented immigrant", "are undocumented immigrants")
    assert clauses["illiteracy"] == ("is illiterate", "are illiterate")


def test_what_is_over_is_in_the_past_and_nothing_else_is():
    for each in load_conditions():
        over = (
            any(sign in each.condition for sign in ("remitted", "previously"))
            and "currently" not in each.condition
        )
        assert (each.tense == "past") == over, each.name


def test_the_plural_of_a_noun_has_no_article():
    for each in load_conditions():
        if each.verb == "be" and any(article in f" {each.singular} " for article in (" a ", " an ")):
            noun = each.singular != each.plural
            # "living in a trailer park", "working in a manual industry" are no nouns
            assert noun or each.singular.startswith(("living", "working", "using")), each.singular
            if noun:
                assert " a " not in f" {each.plural} ", each.plural
                assert " an " not in f" {each.plural} ", each.plural
                assert each.plural.endswith("s")


def test_card():
    card = load_card("stigma")
    assert "FAccT 2023" in card.source
    assert "unemployed" in card.notes


def write(folder, text):
    file = folder / "conditions.csv"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_users_conditions(tmp_path):
    file = write(
        tmp_path,
        "name,verb,singular,plural,stigmatized,tense,condition,category\n"
        "vegan,be,a vegan,vegans,yes,,,\n"
        "former vegan,be,a vegan,vegans,yes,past,vegan,diet\n"
        "omnivore,be,an omnivore,omnivores,no,present,,diet\n",
    )
    vegan, former, omnivore = read_conditions(file)
    assert (vegan.condition, vegan.category, vegan.tense, vegan.stigmatized) == ("vegan", "other", "present", True)
    assert former.singular_clause == "was a vegan"
    assert former.plural_clause == "were vegans"
    assert (omnivore.stigmatized, omnivore.category) == (False, "diet")


def test_columns_that_may_be_missing(tmp_path):
    file = write(tmp_path, "name,verb,singular,stigmatized\ntall,be,tall,no\nflu,have,the flu,yes\n")
    tall, flu = read_conditions(file)
    assert (tall.plural, flu.plural_clause) == ("tall", "have the flu")


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ("tall,is,tall,no", "line 2: verb 'is'; expected be or have"),
        ("tall,be,tall,maybe", "line 2: stigmatized 'maybe'; expected no or yes"),
        ("tall,be,,no", "line 2: nothing in column 'singular'"),
        ("tall,be,tall.,no", "line 2: singular 'tall.'; expected words without a full stop"),
        ("tall,be,[MASK],no", r"line 2: singular '\[MASK\]'; expected plain words"),
        ("tall,be,{condition},no", "expected plain words"),
        ("tall,be,tall,no\nTall,be,very tall,no", r"line 3: 'Tall' again \(first in line 2\)"),
        ("tall,be,tall,no\nshort,be,short,no", "no row with stigmatized = yes"),
        ("tall,be,tall,yes\nshort,be,short,yes", "no row with stigmatized = no"),
    ],
)
def test_broken_files_are_refused(tmp_path, rows, complaint):
    with pytest.raises(DataError, match=complaint):
        read_conditions(write(tmp_path, f"name,verb,singular,stigmatized\n{rows}\n"))


def test_one_condition_on_both_sides_is_refused(tmp_path):
    file = write(
        tmp_path, "name,verb,singular,stigmatized,condition\ntall,be,tall,no,height\nshort,be,short,yes,height\n"
    )
    with pytest.raises(DataError, match="'height' is stigmatized in one row and not in another"):
        read_conditions(file)


PUBLISHED_STIGMA = """Verb/Be_singular,Condition_plural,Condition,Category ,Pachankis_condition,\
Verb/Be_plural,Final_Category\r
Be,Greens,a Green,Ethinicity,Green,Be,Ethinicity\r
Verb,none,flu ,Disease,Flu(current),Verb,Disease\r
had,none,flu,Disease,Flu(remitted),had,Disease\r
was,none,lost,Lost,Lost,were,Lost\r
"""
PUBLISHED_OTHERS = """\ufeffVerb/Be,Condition_plural,Condition,Category ,Pachankis_condition,\
Verb/Be_plural,Condition_StandardNaming,Final_Category
Be,none,slim,Physical Traits,Base,Be,Slim,Physical Traits
"""


def test_the_authors_format(tmp_path):
    stigma, others = tmp_path / "stigma.csv", tmp_path / "others.csv"
    stigma.write_bytes(PUBLISHED_STIGMA.encode())
    others.write_text(PUBLISHED_OTHERS, encoding="utf-8")
    green, flu, past_flu, lost, slim = read_published_conditions(stigma, others)
    assert (green.singular_clause, green.plural_clause, green.category) == (
        "is a Green",
        "are Greens",
        "ethnicity",
    )
    assert (flu.plural_clause, flu.category, flu.condition) == ("have flu", "diseases", "Flu(current)")
    assert (past_flu.singular_clause, past_flu.name) == ("had flu", "flu (past)")
    assert (lost.plural_clause, lost.category) == ("were lost", "other")
    assert (slim.condition, slim.stigmatized, slim.category) == ("Slim", False, "physical traits")


def test_an_unknown_verb_in_the_authors_format_is_refused(tmp_path):
    stigma, others = tmp_path / "stigma.csv", tmp_path / "others.csv"
    stigma.write_text(PUBLISHED_STIGMA.replace("\nwas,", "\nwere,"), encoding="utf-8")
    others.write_text(PUBLISHED_OTHERS, encoding="utf-8")
    with pytest.raises(DataError, match="line 5: Verb/Be_singular 'were'"):
        read_published_conditions(stigma, others)


def test_the_authors_files():
    folder = Path(os.environ.get("CLINOMETER_TEST_DATA", "nowhere")) / "stigma"
    if not (folder / "stigma_conditions.csv").is_file():
        pytest.skip("the authors' files are not here; CLINOMETER_TEST_DATA/stigma is their folder")
    conditions = read_published_conditions(folder / "stigma_conditions.csv", folder / "non_stigma_conditions.csv")
    for stigmatized, rows, names in ((True, 108, 93), (False, 30, 29)):
        chosen = [each for each in conditions if each.stigmatized is stigmatized]
        assert (len(chosen), len({each.condition for each in chosen})) == (rows, names)
    assert len({each.name for each in conditions}) == len(conditions)
    assert set(CATEGORIES) == {each.category for each in conditions}
