#![no_main]
//! See `throughline_fuzz::splice`.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| throughline_fuzz::splice(data));
