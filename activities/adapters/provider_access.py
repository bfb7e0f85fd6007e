"""Where the provider is and who we are to it, by GPUMEND_PROVIDER_URL, _TOKEN or _TOKEN_FILE, _CA.

The token file is read for every request: mounted secrets rotate.
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

PREFIX = "GPUMEND_PROVIDER_"
SCHEMES = ("http", "https")


@dataclass(frozen=True, slots=True)
class ProviderAccess:
    """`ca` is the bundle that its certificate is checked against; None: the system's."""

    url: str
    token: str = ""
    token_file: Path | None = None
    ca: Path | None = None

    def authorization(self) -> str | None:
        """The value of the header, or None without a token; raises OSError for its file."""
        token = self.token_file.read_text().strip() if self.token_file else self.token
        return f"Bearer {token}" if token else None

    def trust(self) -> ssl.SSLContext:
        """What its certificate must follow from; raises OSError and ssl.SSLError for the bundle."""
        return ssl.create_default_context(cafile=str(self.ca) if self.ca else None)


def read_access(environment: Mapping[str, str]) -> ProviderAccess | None:
    """The access that the environment describes; None where there is no URL.

    Raises ValueError that names the variable and what to write.
    """
    given = {each: environment.get(PREFIX + each, "") for each in ("TOKEN", "TOKEN_FILE", "CA")}
    url = environment.get(f"{PREFIX}URL", "").rstrip("/")
    if not url:
        named = [PREFIX + each for each, value in given.items() if value]
        if named:
            raise ValueError(f"{named[0]} is set and {PREFIX}URL is not: set both or neither")
        return None
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES or not parts.hostname:
        raise ValueError(f"{PREFIX}URL is {url!r}: write it like https://provider.example/gpumend")
    if given["TOKEN"] and given["TOKEN_FILE"]:
        raise ValueError(f"{PREFIX}TOKEN and {PREFIX}TOKEN_FILE are both set: keep one")
    for each in ("TOKEN_FILE", "CA"):
        if given[each] and not Path(given[each]).is_file():
            raise ValueError(f"{PREFIX}{each}: there is no file {given[each]!r}")
    file = Path(given["TOKEN_FILE"]) if given["TOKEN_FILE"] else None
    return ProviderAccess(url, given["TOKEN"], file, Path(given["CA"]) if given["CA"] else None)
