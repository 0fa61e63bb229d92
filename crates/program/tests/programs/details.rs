//! Tests of `ToolError.details`.

use super::desk::ran;

#[test]
fn a_failed_http_call_has_status_body_and_headers() {
    let code = "try:\n    await missing_page()\nexcept ToolError as error:\n    print(error.type, error.details['status'], error.details['body']['reason'], error.details['headers'])\n";
    let text = "[Script executed successfully]\ntool_failed 404 gone {'retry-after': '7'}";
    assert_eq!(ran(code).text, text);
}

#[test]
fn a_protocol_error_has_code_and_data() {
    let code = "try:\n    await refuse()\nexcept ToolError as error:\n    print(error.type, error.details['code'], error.details['data'])\n";
    let text = "[Script executed successfully]\ntool_failed -32099 {'field': 'x'}";
    assert_eq!(ran(code).text, text);
}
