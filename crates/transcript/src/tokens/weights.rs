//! What each kind of run costs, in thousandths of an `o200k_base` token.
//!
//! Fitted by least squares of the relative error over English prose, Markdown, code in six languages, JSON, TOML, HTML,
//! logs, hashes and base64, and text in twenty-five languages. `docs/benchmarks/tokens.md` tells how close it comes.

use super::scan::KINDS;

/// Cost by kind of run; the rows are the groups of `scan::kind`.
#[rustfmt::skip]
pub(super) const MILLITOKENS: [u32; KINDS] = [
    // WORD_AFTER_SPACE
    850, 864, 850, 850, 964, 1079, 1061, 1189, 1755, 1433, 1732, 2098, 2091, 2257, 2353, 2747,
    // WORD_AFTER_SIGN
    964, 1557, 2200, 1245, 1091, 1761, 1018, 1744, 1733, 2031, 1895, 1955, 1984, 2102, 2306, 2518,
    // WORD
    1415, 2200, 1433, 937, 1300, 871, 850, 910, 1279, 1487, 1489, 1733, 1955, 2178, 2317, 2633,
    // CAPITALS
    996, 1037, 1239, 1125, 1645, 1633, 1725, 2647, 2892, 3158, 3562, 4047, 4280, 4630, 4937, 5229,
    // LETTERS_AT_DIGITS
    750, 1526, 2440, 2917, 3067, 3125, 3646, 3801, 4515, 5010, 5477, 6011, 6510, 7002, 7503, 8011,
    // SAME_SIGNS
    1006, 700, 1068, 1045, 1012, 1000, 975, 1001, 998, 1000, 1015, 1000, 1001, 999, 1001, 1008,
    // MIXED_SIGNS
    998, 925, 1188, 1943, 1952, 2122, 2360, 2703, 3096, 3484, 3798, 4097, 4484, 4895, 5191, 4896,
    // BLANKS
    1026, 929, 831, 1059, 697, 827, 720, 936, 954, 943, 674, 915, 821, 946, 711, 500,
    // DIGITS, SPACE_BEFORE_DIGIT, LINE_END, LINE_END_AFTER_SIGN, TAB, ACCENT, OTHER_SPACE, CONTROL
    1000, 857, 1013, 100, 367, 405, 116, 1007,
    // FOREIGN_WORD
    788, 788, 945, 1024, 1181, 1418, 1916, 2389, 2863, 2682, 3396, 3462, 3898, 4011, 4095, 4571,
    // SCRIPT_CHARACTER
    732, 337, 120, 372, 411, 229, 699, 380, 377, 345,
    321, 300, 598, 593, 575, 491, 686, 287, 300, 1349,
    // SCRIPT_RUN
    503, 254, 1183, 0, 20, 388, 199, 0, 236, 346,
    55, 0, 265, 135, 507, 121, 1159, 1038, 0, 532,
];
