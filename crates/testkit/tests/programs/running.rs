//! What a program says and how it ends.

use toolyard_program::{Ending, How, Printed};

use crate::fixture::{engine, run};

fn finished(text: &str) -> Ending {
    Ending { printed: Printed { text: text.into(), left_out: 0 }, how: How::Finished }
}

#[tokio::test]
async fn what_is_printed_comes_back() {
    let engine = engine();
    assert_eq!(run(&engine, "print(1)").await, Ok(finished("1\n")));
    engine.stop().await;
}
