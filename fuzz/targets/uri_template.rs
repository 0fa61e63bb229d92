#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| toolyard_hub::fuzzing::uri_template(bytes));
