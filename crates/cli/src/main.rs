//! The binary `toolyard`. Everything is in the library, so that fuzz targets can reach it.

use std::process::ExitCode;

fn main() -> ExitCode {
    toolyard::main()
}
