#![no_main]
//! See `throughline_fuzz::read`.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| throughline_fuzz::read(data));
