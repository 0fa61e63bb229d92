//! Programs in the sandbox, by a launcher that differs from the product's only in that it can leave layers out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may")]
#![allow(clippy::disallowed_methods, reason = "how long the long form takes is said from outside")]

mod programs {
    mod attacked;
    mod desk;
    mod details;
    mod fixture;
    mod hints;
    mod living;
    mod refused;
    mod running;
    mod scripts;
    mod shop;
    mod unfinished;
    mod words;
}
