#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| toolyard_config::fuzzing::config(bytes));
