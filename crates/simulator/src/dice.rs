//! Chance that is the same each time: everything that looks random in the simulator is drawn from a seed.

/// A generator of pseudo-random numbers (SplitMix64). Not for secrets.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// Dice for one purpose: the same seed and the same facts give the same throws.
    pub(crate) fn new(seed: u64, purpose: &str, facts: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&seed.to_le_bytes());
        hasher.update(purpose.as_bytes());
        for fact in facts {
            hasher.update(&(fact.len() as u64).to_le_bytes());
            hasher.update(fact);
        }
        let mut start = [0; 8];
        for (to, from) in start.iter_mut().zip(hasher.finalize().as_bytes()) {
            *to = *from;
        }
        Self(u64::from_le_bytes(start))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`; 0 if there is none.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % (limit.max(1) as u64)).unwrap_or(0)
    }

    /// A number from `least` to `most`, both included.
    pub(crate) fn between(&mut self, least: usize, most: usize) -> usize {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// Whether something of this probability happens.
    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        ((self.next() >> 11) as f64) / ((1u64 << 53) as f64) < probability
    }

    /// One of the choices.
    pub(crate) fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices
            .get(self.below(choices.len()))
            .copied()
            .unwrap_or_default()
    }

    /// An identifier as providers make them: `length` characters after the prefix.
    pub(crate) fn id(&mut self, prefix: &str, length: usize) -> String {
        const CHARACTERS: &[u8] = b"0123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghjkmnpqrstuvwxyz";
        let mut id = String::with_capacity(prefix.len() + length);
        id.push_str(prefix);
        for _ in 0..length {
            let at = self.below(CHARACTERS.len());
            id.push(char::from(CHARACTERS.get(at).copied().unwrap_or(b'0')));
        }
        id
    }
}
