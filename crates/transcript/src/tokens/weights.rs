//! The cost of each kind of run, in thousandths of an `o200k_base` token.
//!
//! Fitted by least squares of the relative error over English prose, Markdown, code in six languages, JSON, TOML, HTML,
//! logs, hashes and base64, and text in twenty-five languages. `docs/benchmarks.md` has the measured accuracy.

use super::scan::KINDS;

/// Cost by kind of run; the rows are the groups of `scan::kind`.
#[rustfmt::skip]
pub(super) const MILLITOKENS: [u32; KINDS] = [
    // WORD_AFTER_SPACE
    985, 985, 985, 985, 985, 985, 985, 985, 1171, 1050, 1421, 2062, 2059, 2254, 2338, 2777,
    // WORD_AFTER_SIGN
    900, 1722, 2200, 1279, 985, 1841, 1102, 1928, 1944, 2439, 2061, 2268, 1919, 2071, 2314, 2319,
    // WORD
    1195, 2200, 1441, 958, 1117, 951, 988, 910, 1265, 1673, 1357, 1733, 1956, 2276, 2356, 2684,
    // CAPITALS
    990, 900, 1050, 1238, 1665, 1500, 1725, 2824, 2579, 2786, 3443, 4037, 4276, 4623, 4748, 5176,
    // LETTERS_AT_DIGITS
    750, 1433, 2477, 3313, 3783, 3312, 3651, 3219, 4532, 5042, 5381, 6027, 6530, 7005, 7514, 8035,
    // SAME_SIGNS
    917, 700, 879, 1070, 1062, 1015, 948, 1054, 994, 996, 1047, 1018, 1006, 1001, 1006, 1095,
    // MIXED_SIGNS
    999, 948, 1129, 2112, 2159, 2065, 2290, 2568, 2991, 3516, 3791, 4107, 4464, 4902, 5179, 4200,
    // BLANKS
    942, 953, 916, 1284, 876, 897, 690, 940, 1110, 968, 666, 793, 667, 854, 500, 500,
    // DIGITS, SPACE_BEFORE_DIGIT, LINE_END, LINE_END_AFTER_SIGN, TAB, ACCENT, OTHER_SPACE, CONTROL
    1000, 1082, 1121, 100, 313, 300, 142, 1071,
    // FOREIGN_WORD
    980, 980, 980, 980, 1125, 1350, 1500, 1826, 2568, 2585, 3090, 3145, 3515, 3650, 3809, 4195,
    // SCRIPT_CHARACTER
    500, 356, 120, 371, 378, 180, 699, 383, 379, 364,
    319, 300, 604, 524, 516, 400, 689, 499, 1541, 1883,
    // SCRIPT_RUN
    0, 143, 1264, 0, 171, 771, 199, 0, 243, 181,
    80, 0, 425, 66, 391, 369, 789, 594, 0, 1029,
];
