//! The binary `toolyard`. Everything is in the library, so that fuzz targets can reach it.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    toolyard::main()
}
