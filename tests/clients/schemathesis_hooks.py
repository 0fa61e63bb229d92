"""What schemathesis is told about this API beyond its document."""

import schemathesis


@schemathesis.check
def no_internal_error(ctx, response, case):
    assert b"INTERNAL_ERROR" not in response.content, response.content


def fits(query):
    # `tag=x` is a list of one tag, and not a tag of the wrong type.
    return not query or not isinstance(query.get("tag"), str)


@schemathesis.hook
def filter_query(context, query):
    return fits(query)


@schemathesis.hook
def filter_case(context, case):
    # Some phases know no parts of requests, only whole ones.
    return fits(case.query)
