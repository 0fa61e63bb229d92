"""What schemathesis is told about this API beyond its document."""

import schemathesis


@schemathesis.check
def no_internal_error(ctx, response, case):
    assert b"INTERNAL_ERROR" not in response.content, response.content


@schemathesis.hook
def filter_case(context, case):
    # `tag=x` is a list of one tag, and not a tag of the wrong type.
    return not isinstance((case.query or {}).get("tag"), str)
