#![no_main]
//! See `throughline_fuzz::convert`.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| throughline_fuzz::convert(data));
