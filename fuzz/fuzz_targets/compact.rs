#![no_main]
//! See `throughline_fuzz::compact`.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| throughline_fuzz::compact(data));
