//! What the suite asks of the fixture, asked in process.

use super::yard;

#[test]
fn lists_a_tool_that_needs_no_arguments_first() {
    let catalog = yard().catalog();
    assert_eq!(catalog.tools()[0].raw_name, "test_simple_text");
}
