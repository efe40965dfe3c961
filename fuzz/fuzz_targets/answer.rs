#![no_main]
//! See `throughline_fuzz::answer`.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| throughline_fuzz::answer(data));
