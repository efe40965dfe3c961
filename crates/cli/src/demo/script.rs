//! What the user of the demo says: a project over many turns, with facts that are told once, some of them corrected
//! later, and asked for at the end.

/// A session, turn by turn. The same seed gives the same one.
pub(crate) struct Script {
    turns: Vec<Turn>,
    facts: Vec<Fact>,
}

/// What the user says, and how long they take before that.
pub(crate) struct Turn {
    pub(crate) text: String,
    pub(crate) pause_s: u64,
}

/// Something that was told, as it is true at the end.
pub(crate) struct Fact {
    pub(crate) name: &'static str,
    pub(crate) value: String,
}

/// What can be told, and what its values begin with.
const FACTS: [(&str, &str); 24] = [
    ("deploy region", "eu-north-"),
    ("invoice prefix", "INV-"),
    ("staging port", "84"),
    ("release branch", "rel/2026-"),
    ("owner of the billing module", "team Osprey "),
    ("retry limit", "tries: "),
    ("tax code", "TX-"),
    ("archive bucket", "cold-store-"),
    ("error budget", "minutes: "),
    ("name of the nightly job", "sweep-"),
    ("support mailbox", "desk"),
    ("schema version", "v"),
    ("session limit", "seats: "),
    ("audit table", "audit_log_"),
    ("mirror host", "mirror-"),
    ("review day", "weekday "),
    ("cache lifetime", "seconds: "),
    ("signing profile", "profile-"),
    ("queue name", "orders-"),
    ("feature flag", "flag_"),
    ("report format", "layout "),
    ("backup window", "from hour "),
    ("customer code", "C-"),
    ("test account", "acct"),
];

const MATTERS: [&str; 8] = [
    "the import of bank files",
    "rounding in the totals",
    "the slow search page",
    "the export for the auditors",
    "double mails after a retry",
    "time zones in the calendar",
    "the login of partner shops",
    "the nightly clean-up",
];

const LEVELS: [&str; 4] = ["INFO", "WARN", "DEBUG", "ERROR"];

/// Turns from one told fact to the next.
const TOLD_EVERY: usize = 4;
/// Lines of a log that is pasted.
const LOG_LINES: u64 = 28;

impl Script {
    pub(crate) fn new(seed: u64, turns: usize) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut facts: Vec<Fact> = Vec::new();
        let mut told = Vec::new();
        for number in 0..turns {
            let matter = MATTERS[(number / 9) % MATTERS.len()];
            let mut text = String::new();
            if number % TOLD_EVERY == 1 {
                let corrects =
                    !facts.is_empty() && (facts.len() == FACTS.len() || dice.below(4) == 0);
                if corrects {
                    let which = dice.below(facts.len() as u64) as usize;
                    let fact = &mut facts[which];
                    let (name, prefix) = FACTS[which];
                    fact.value = value(prefix, &mut dice);
                    text = format!("Correction: the {name} is now {}. ", fact.value);
                } else {
                    let (name, prefix) = FACTS[facts.len()];
                    let value = value(prefix, &mut dice);
                    text = format!("Remember: the {name} is {value}. ");
                    facts.push(Fact { name, value });
                }
            }
            text.push_str(&format!(
                "Let us go on with {matter}, part {}. Look at what the service wrote and tell me what you would do next:\n",
                number + 1
            ));
            for line in 0..LOG_LINES {
                text.push_str(&format!(
                    "2026-03-{:02}T{:02}:{:02}:{:02}Z {} svc-{} request {:08x} took {} ms, rows {}\n",
                    1 + number % 28,
                    dice.below(24),
                    line % 60,
                    dice.below(60),
                    LEVELS[dice.below(4) as usize],
                    dice.below(9),
                    dice.next() as u32,
                    dice.below(4000),
                    dice.below(900),
                ));
            }
            // People think for a while; now and then they leave, and the cache expires.
            let pause_s = if dice.below(25) == 0 {
                600 + dice.below(1800)
            } else {
                5 + dice.below(90)
            };
            told.push(Turn { text, pause_s });
        }
        Self { turns: told, facts }
    }

    pub(crate) fn turns(&self) -> &[Turn] {
        &self.turns
    }

    pub(crate) fn facts(&self) -> &[Fact] {
        &self.facts
    }
}

fn value(prefix: &str, dice: &mut Dice) -> String {
    format!("{prefix}{}", 100 + dice.below(900))
}

/// Numbers from a seed (xorshift64*).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// What a tool returns, without running anything.
pub(crate) fn output(call: u64) -> String {
    let mut dice = Dice(call.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut text = String::new();
    for line in 0..40 {
        text.push_str(&format!(
            "{:4}  let total_{} = round(amount_{}, {}) + fee_{}; // rule {}\n",
            line + 1,
            dice.below(90),
            dice.below(90),
            dice.below(4),
            dice.below(30),
            dice.below(500),
        ));
    }
    text
}
