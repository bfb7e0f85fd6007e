"""A provider's settings are right as a whole, or the message says which variable to mend."""

import pytest

from activities.adapters.provider_access import read_access
from tests.provider.openapi import OpenApi

URL = {"GPUMEND_PROVIDER_URL": "https://p.example/x/"}


def test_an_access_is_read_from_the_environment(tmp_path):
    assert read_access({}) is None
    access = read_access(URL | {"GPUMEND_PROVIDER_TOKEN": "t"})
    assert access
    assert (access.url, access.authorization()) == ("https://p.example/x", "Bearer t")
    file = tmp_path / "token"
    file.write_text("secret\n")
    filed = read_access(URL | {"GPUMEND_PROVIDER_TOKEN_FILE": str(file)})
    assert filed
    assert filed.authorization() == "Bearer secret"
    bare = read_access(URL)
    assert bare
    assert bare.authorization() is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"GPUMEND_PROVIDER_TOKEN": "t"}, "GPUMEND_PROVIDER_URL is not"),
        ({"GPUMEND_PROVIDER_URL": "p.example"}, "write it like https://"),
        ({"GPUMEND_PROVIDER_URL": "ftp://p.example"}, "write it like https://"),
        (URL | {"GPUMEND_PROVIDER_CA": "/nowhere"}, "GPUMEND_PROVIDER_CA: there is no file"),
        (
            URL | {"GPUMEND_PROVIDER_TOKEN": "t", "GPUMEND_PROVIDER_TOKEN_FILE": "f"},
            "keep one",
        ),
    ],
)
def test_a_mistake_names_the_variable(given, words):
    with pytest.raises(ValueError, match=words):
        read_access(given)


def test_the_checker_finds_what_is_wrong():
    openapi = OpenApi()
    schema = {"$ref": "#/components/schemas/Operation"}
    good = {"id": "o", "change": "stop", "machine": {"node": "n"}, "state": "done"}
    assert openapi.mistakes(schema, good) == []
    assert openapi.mistakes(schema, good | {"state": "ready"})
    assert openapi.mistakes(schema, good | {"machine": {"node": "n", "rack": "r"}})
    assert openapi.mistakes(schema, {"id": "o"})
    assert openapi.mistakes(schema, good | {"id": ""})
