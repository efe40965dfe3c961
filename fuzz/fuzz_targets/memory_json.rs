#![no_main]
//! See `throughline_fuzz::memory_json`.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| throughline_fuzz::memory_json(data));
