"""Who is calling: a bearer token becomes a principal, anew for each request and for each operation of a socket."""

from collections.abc import Mapping
from typing import Any

from tenure.db.engine import Database
from tenure.db.errors import TenureError
from tenure.db.people import PrincipalRow, principal_of_token

SCHEME = "bearer"


class InvalidToken(TenureError):
    """Credentials were given and stand for nobody, or no longer."""

    code = "UNAUTHENTICATED"


def authorization_of(params: Mapping[str, Any]) -> str | None:
    """The Authorization of a connection_init payload, in whatever case its name is written. Raises InvalidToken."""
    for name, value in params.items():
        if name.lower() == "authorization" and value is not None:
            if not isinstance(value, str):
                raise InvalidToken("Authorization is written as Bearer and a token.")
            return value
    return None


async def authenticate(database: Database, authorization: str | None) -> PrincipalRow | None:
    """Whom an Authorization header speaks for; null without one.

    Raises InvalidToken: somebody who sends credentials is never taken for nobody. Raises StorageUnavailable.
    """
    if authorization is None:
        return None
    scheme, _, token = authorization.partition(" ")
    token = token.strip()
    if scheme.lower() != SCHEME or not token:
        raise InvalidToken("Authorization is written as Bearer and a token.")
    principal = await database.run(lambda connection: principal_of_token(connection, token))
    if principal is None:
        raise InvalidToken("The token is not valid, or no longer.")
    return principal
