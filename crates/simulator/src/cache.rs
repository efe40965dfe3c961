//! Prompt caches: the one with markers (Anthropic), the one in steps and the one with breakpoints (OpenAI).
//!
//! An entry is the digest of a prefix. It can be read once the answer to the request that wrote it has begun, and lives
//! for a while from the *start* of the request that wrote or last read it. The digest begins with the credential and
//! the model, so no credential reads the entries of another.
//!
//! Sources: the prompt-caching guides of Anthropic and OpenAI.

use std::collections::HashMap;
use std::time::Duration;

use throughline_transcript::catalogue::{CacheKind, Model};

use crate::prompt::{Key, Lifetime, Place, Prompt};

/// Entries beyond which those that have expired are thrown out, and then the oldest.
const ENTRIES_MAX: usize = 1_000_000;

#[derive(Debug, Default)]
pub(crate) struct PromptCache {
    entries: HashMap<Key, Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    ready_at: Duration,
    expires_at: Duration,
    lives_for: Duration,
}

/// The tokens of a prompt by their relation to the cache: read, written, neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Split {
    pub(crate) uncached: u64,
    pub(crate) write_short: u64,
    pub(crate) write_long: u64,
    pub(crate) read: u64,
}

/// What a request does to the cache once it is accepted.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) split: Split,
    writes: Vec<(Key, Duration)>,
}

/// The cache options of a request on the wires of OpenAI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breakpoints {
    /// One at the end, and those that the request sets.
    Implicit,
    /// Only those that the request sets.
    Explicit,
}

impl PromptCache {
    /// How a prompt would be split at this moment.
    pub(crate) fn plan(
        &self,
        prompt: &Prompt,
        model: &Model,
        breakpoints: Breakpoints,
        lifetime: Lifetime,
        now: Duration,
    ) -> Plan {
        match model.cache.kind {
            CacheKind::Markers => self.with_markers(prompt, model, now),
            CacheKind::Automatic => self.in_steps(prompt, model, now),
            CacheKind::Breakpoints => {
                self.with_breakpoints(prompt, model, breakpoints, lifetime, now)
            }
            CacheKind::None => Plan {
                split: Split {
                    uncached: prompt.tokens(),
                    ..Split::default()
                },
                writes: Vec::new(),
            },
        }
    }

    /// Carries out a plan: present entries live longer, and new ones can be read from `ready_at` on.
    pub(crate) fn commit(&mut self, plan: &Plan, started_at: Duration, ready_at: Duration) {
        for (key, lives_for) in &plan.writes {
            let entry = self.entries.entry(*key).or_insert(Entry {
                ready_at,
                expires_at: started_at,
                lives_for: *lives_for,
            });
            if entry.expires_at <= started_at {
                // It had expired: this is a new one.
                entry.ready_at = ready_at;
                entry.lives_for = *lives_for;
            }
            // One that is written with a longer life has it from now on.
            entry.lives_for = entry.lives_for.max(*lives_for);
            entry.ready_at = entry.ready_at.min(ready_at);
            entry.expires_at = entry.expires_at.max(started_at + entry.lives_for);
        }
        if self.entries.len() > ENTRIES_MAX {
            self.entries
                .retain(|_, entry| entry.expires_at > started_at);
            if self.entries.len() > ENTRIES_MAX {
                let mut ends: Vec<_> = self
                    .entries
                    .values()
                    .map(|entry| entry.expires_at)
                    .collect();
                ends.sort_unstable();
                let middle = ends.get(ends.len() / 2).copied().unwrap_or_default();
                self.entries.retain(|_, entry| entry.expires_at > middle);
            }
        }
    }

    fn live(&self, place: &Place, now: Duration) -> Option<&Entry> {
        self.entries
            .get(&place.chain)
            .filter(|entry| entry.ready_at <= now && now < entry.expires_at)
    }

    fn with_markers(&self, prompt: &Prompt, model: &Model, now: Duration) -> Plan {
        let minimum = model.cache.min_tokens.unwrap_or(0);
        let lookback = model.cache.lookback_blocks.unwrap_or(20).max(1) as usize;
        let places = &prompt.places;
        let marked: Vec<usize> = (0..places.len())
            .filter(|at| {
                places
                    .get(*at)
                    .is_some_and(|place| place.marker.is_some() && place.tokens >= minimum)
            })
            .collect();
        let hit = marked.iter().rev().find_map(|marker| {
            let from = (marker + 1).saturating_sub(lookback);
            (from..=*marker)
                .rev()
                .find_map(|at| Some((at, self.live(places.get(at)?, now)?)))
        });
        let tokens_at = |at: usize| places.get(at).map_or(0, |place| place.tokens);
        let read = hit.map_or(0, |(at, _)| tokens_at(at));
        let long_end = marked
            .iter()
            .filter(|at| places.get(**at).and_then(|place| place.marker) == Some(Lifetime::Long))
            .map(|at| tokens_at(*at))
            .max()
            .unwrap_or(0)
            .max(read);
        let end = marked.last().map_or(0, |at| tokens_at(*at)).max(long_end);
        let mut writes: Vec<(Key, Duration)> = marked
            .iter()
            .filter_map(|at| places.get(*at))
            .filter_map(|place| Some((place.chain, place.marker?.of(model))))
            .collect();
        // A hit between markers lives on at its own lifetime.
        if let Some((at, entry)) = hit
            && !marked.contains(&at)
            && let Some(place) = places.get(at)
        {
            writes.push((place.chain, entry.lives_for));
        }
        Plan {
            split: Split {
                uncached: prompt.tokens() - end,
                write_short: end - long_end,
                write_long: long_end - read,
                read,
            },
            writes,
        }
    }

    /// The longest beginning that both have, in whole steps, wherever it ends.
    fn in_steps(&self, prompt: &Prompt, model: &Model, now: Duration) -> Plan {
        let read = prompt
            .steps
            .iter()
            .rev()
            .find(|step| self.live(step, now).is_some())
            .map_or(0, |step| step.tokens);
        let lives_for = Lifetime::Short.of(model);
        Plan {
            split: Split {
                uncached: prompt.tokens() - read,
                read,
                ..Split::default()
            },
            writes: prompt
                .steps
                .iter()
                .map(|step| (step.chain, lives_for))
                .collect(),
        }
    }

    fn with_breakpoints(
        &self,
        prompt: &Prompt,
        model: &Model,
        breakpoints: Breakpoints,
        lifetime: Lifetime,
        now: Duration,
    ) -> Plan {
        let minimum = model.cache.min_tokens.unwrap_or(1024);
        let lookback = model.cache.lookback_blocks.unwrap_or(80) as usize;
        let explicit_max = model.cache.markers_max.unwrap_or(4) as usize
            - usize::from(breakpoints == Breakpoints::Implicit);
        let places = &prompt.places;
        let last = places.len().saturating_sub(1);
        let mut marked: Vec<usize> = (0..places.len())
            .filter(|at| places.get(*at).is_some_and(|place| place.marker.is_some()))
            .collect();
        let surplus = marked.len().saturating_sub(explicit_max);
        marked.drain(..surplus);
        if breakpoints == Breakpoints::Implicit && marked.last() != Some(&last) {
            marked.push(last);
        }
        marked.retain(|at| places.get(*at).is_some_and(|place| place.tokens >= minimum));
        let tokens_at = |at: usize| places.get(at).map_or(0, |place| place.tokens);
        if marked.is_empty() {
            return Plan {
                split: Split {
                    uncached: prompt.tokens(),
                    ..Split::default()
                },
                writes: Vec::new(),
            };
        }
        // Only breakpoints have entries, so the latest of them are the places that have one.
        let read = places
            .iter()
            .rev()
            .filter(|place| self.entries.contains_key(&place.chain))
            .take(lookback)
            .find(|place| self.live(place, now).is_some())
            .map_or(0, |place| place.tokens);
        let end = marked.last().map_or(0, |at| tokens_at(*at)).max(read);
        let lives_for = lifetime.of(model);
        let mut writes: Vec<_> = marked
            .iter()
            .filter_map(|at| Some((places.get(*at)?.chain, lives_for)))
            .collect();
        writes.extend(
            places
                .iter()
                .filter(|place| place.tokens == read && self.live(place, now).is_some())
                .map(|place| (place.chain, lives_for)),
        );
        let written = end - read;
        let (write_short, write_long) = match lifetime {
            Lifetime::Short => (written, 0),
            Lifetime::Long => (0, written),
        };
        Plan {
            split: Split {
                uncached: prompt.tokens() - end,
                write_short,
                write_long,
                read,
            },
            writes,
        }
    }
}

#[cfg(test)]
mod tests {
    use throughline_transcript::catalogue::Catalogue;

    use super::*;
    use crate::prompt::digest;

    /// A prompt of `blocks` places of 1,000 tokens with markers at these places, counted from 1.
    fn prompt(blocks: u32, markers: &[(u32, Lifetime)]) -> Prompt {
        Prompt {
            places: (1..=blocks)
                .map(|at| Place {
                    chain: digest(&[&at.to_le_bytes()]),
                    tokens: u64::from(at) * 1000,
                    marker: markers
                        .iter()
                        .find(|(marker, _)| *marker == at)
                        .map(|(_, lifetime)| *lifetime),
                })
                .collect(),
            steps: Vec::new(),
        }
    }

    /// A prompt of this many tokens with a step at each place of the cache, of which the first `same` are always the same.
    fn stepped(tokens: u64, same: u64) -> Prompt {
        let step = |at: u64| Place {
            chain: match at <= same {
                true => digest(&[&at.to_le_bytes()]),
                false => digest(&[&at.to_le_bytes(), &tokens.to_le_bytes()]),
            },
            tokens: at,
            marker: None,
        };
        Prompt {
            places: vec![step(tokens)],
            steps: (1024..=tokens).step_by(128).map(step).collect(),
        }
    }

    fn model(id: &str) -> &'static Model {
        Catalogue::embedded().find(id).unwrap()
    }

    fn plan(cache: &PromptCache, prompt: &Prompt, id: &str, at_s: u64) -> Plan {
        cache.plan(
            prompt,
            model(id),
            Breakpoints::Implicit,
            Short,
            Duration::from_secs(at_s),
        )
    }

    fn send(cache: &mut PromptCache, prompt: &Prompt, id: &str, at_s: u64, ready_s: u64) -> Split {
        let plan = plan(cache, prompt, id, at_s);
        cache.commit(
            &plan,
            Duration::from_secs(at_s),
            Duration::from_secs(ready_s),
        );
        plan.split
    }

    fn split(uncached: u64, write_short: u64, write_long: u64, read: u64) -> Split {
        Split {
            uncached,
            write_short,
            write_long,
            read,
        }
    }

    const CLAUDE: &str = "claude-opus-5";
    use Lifetime::{Long, Short};

    #[test]
    fn a_marker_looks_back_over_twenty_places_itself_included() {
        let mut cache = PromptCache::default();
        send(&mut cache, &prompt(15, &[(15, Short)]), CLAUDE, 0, 1);
        let look = |blocks| plan(&cache, &prompt(blocks, &[(blocks, Short)]), CLAUDE, 2).split;
        assert_eq!(look(34), split(0, 19_000, 0, 15_000));
        assert_eq!(look(35), split(0, 35_000, 0, 0));
        // An earlier marker has a window of its own.
        let two = prompt(35, &[(20, Short), (35, Short)]);
        assert_eq!(
            plan(&cache, &two, CLAUDE, 2).split,
            split(0, 20_000, 0, 15_000)
        );
    }

    #[test]
    fn only_marked_places_are_written() {
        let mut cache = PromptCache::default();
        send(&mut cache, &prompt(10, &[(5, Short)]), CLAUDE, 0, 1);
        let check = |marker, read| {
            let split = plan(&cache, &prompt(10, &[(marker, Short)]), CLAUDE, 2).split;
            assert_eq!(split.read, read, "{marker}");
        };
        check(4, 0);
        check(5, 5_000);
        check(6, 5_000);
        assert_eq!(
            plan(&cache, &prompt(10, &[]), CLAUDE, 2).split,
            split(10_000, 0, 0, 0)
        );
    }

    #[test]
    fn lives_count_from_the_start_of_the_request_and_hits_renew_them() {
        let mut cache = PromptCache::default();
        let marked = prompt(5, &[(5, Short)]);
        // The answer begins after four minutes; one minute is left.
        send(&mut cache, &marked, CLAUDE, 0, 240);
        assert_eq!(plan(&cache, &marked, CLAUDE, 239).split.read, 0);
        assert_eq!(plan(&cache, &marked, CLAUDE, 240).split.read, 5_000);
        assert_eq!(plan(&cache, &marked, CLAUDE, 299).split.read, 5_000);
        assert_eq!(plan(&cache, &marked, CLAUDE, 300).split.read, 0);
        assert_eq!(send(&mut cache, &marked, CLAUDE, 299, 300).read, 5_000);
        assert_eq!(plan(&cache, &marked, CLAUDE, 598).split.read, 5_000);
        assert_eq!(plan(&cache, &marked, CLAUDE, 599).split.read, 0);
        // An expired entry is written again, and is not ready before its answer begins.
        send(&mut cache, &marked, CLAUDE, 700, 710);
        assert_eq!(plan(&cache, &marked, CLAUDE, 705).split.read, 0);
        assert_eq!(plan(&cache, &marked, CLAUDE, 710).split.read, 5_000);
    }

    #[test]
    fn a_hit_between_markers_is_renewed_at_its_own_lifetime() {
        let mut cache = PromptCache::default();
        send(&mut cache, &prompt(5, &[(5, Long)]), CLAUDE, 0, 0);
        send(&mut cache, &prompt(8, &[(8, Short)]), CLAUDE, 3000, 3000);
        let later = plan(&cache, &prompt(5, &[(5, Long)]), CLAUDE, 6500);
        assert_eq!(later.split.read, 5_000);
    }

    #[test]
    fn two_lifetimes_split_the_writes() {
        let mut cache = PromptCache::default();
        let check = |cache: &PromptCache, markers: &[(u32, Lifetime)], expected| {
            assert_eq!(plan(cache, &prompt(10, markers), CLAUDE, 2).split, expected);
        };
        check(
            &cache,
            &[(3, Long), (8, Short)],
            split(2_000, 5_000, 3_000, 0),
        );
        check(&cache, &[(3, Long)], split(7_000, 0, 3_000, 0));
        send(&mut cache, &prompt(5, &[(5, Short)]), CLAUDE, 0, 0);
        check(
            &cache,
            &[(3, Long), (8, Short)],
            split(2_000, 3_000, 0, 5_000),
        );
        check(
            &cache,
            &[(7, Long), (8, Short)],
            split(2_000, 1_000, 2_000, 5_000),
        );
    }

    #[test]
    fn short_prefixes_are_not_cached() {
        let mut cache = PromptCache::default();
        let id = "claude-opus-4-5";
        assert_eq!(
            send(&mut cache, &prompt(10, &[(4, Short)]), id, 0, 0),
            split(10_000, 0, 0, 0)
        );
        assert_eq!(
            send(&mut cache, &prompt(10, &[(5, Short)]), id, 0, 0),
            split(5_000, 5_000, 0, 0)
        );
    }

    #[test]
    fn older_models_of_openai_read_in_steps_and_write_for_nothing() {
        let mut cache = PromptCache::default();
        let id = "gpt-5.4";
        let mut check = |tokens, same, read| {
            let got = send(&mut cache, &stepped(tokens, same), id, 0, 0);
            assert_eq!(got, split(tokens - read, 0, 0, read), "{tokens}, {same}");
        };
        check(1_000, 1_000, 0);
        check(3_000, 2_900, 0);
        // 1024 + 14 * 128 = 2816
        check(5_000, 2_900, 2_816);
        check(5_001, 1_100, 1_024);
        check(1_000, 1_000, 0);
        check(5_000, 2_900, 4_992);
    }

    #[test]
    fn newer_models_of_openai_charge_for_writes() {
        let mut cache = PromptCache::default();
        let id = "gpt-6-sol";
        assert_eq!(
            send(&mut cache, &prompt(3, &[]), id, 0, 0),
            split(0, 3_000, 0, 0)
        );
        assert_eq!(
            send(&mut cache, &prompt(5, &[]), id, 1, 1),
            split(0, 2_000, 0, 3_000)
        );
        // Nothing was written at place 2.
        assert_eq!(
            send(&mut cache, &prompt(2, &[]), id, 1, 1),
            split(0, 2_000, 0, 0)
        );
        let explicit = |prompt: &Prompt| {
            let now = Duration::from_secs(2);
            let breakpoints = Breakpoints::Explicit;
            PromptCache::default()
                .plan(prompt, model(id), breakpoints, Short, now)
                .split
        };
        assert_eq!(explicit(&prompt(5, &[])), split(5_000, 0, 0, 0));
        assert_eq!(
            explicit(&prompt(5, &[(3, Short)])),
            split(2_000, 3_000, 0, 0)
        );
    }
}
