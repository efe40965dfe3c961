//! Future-use recall of the extractive compactor on cut sessions.
//!
//! A sample is a session cut in the middle: the part before the cut as a request, and what the part after it needed.
//! The score is the share of that which a memory of a given size still holds, alone and with words of its context.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use fancy_regex::Regex;
use serde::Deserialize;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Folder of samples (`*.json.gz`)
    samples: PathBuf,
    /// Sizes of the memory, in cl100k tokens
    #[arg(long, value_delimiter = ',', default_value = "2000,4000")]
    budget: Vec<usize>,
    /// Show every sample
    #[arg(long)]
    each: bool,
    /// Write the memories to this folder
    #[arg(long)]
    dump: Option<PathBuf>,
    /// Only samples whose name contains this
    #[arg(long)]
    only: Option<String>,
    /// Write the features of all names instead, as CSV
    #[arg(long)]
    features: bool,
    /// List the needed identifiers that are missing
    #[arg(long)]
    missing: bool,
}

#[derive(Deserialize)]
struct Sample {
    id: String,
    corpus: String,
    cwd: Option<String>,
    request: Box<serde_json::value::RawValue>,
    needed: Vec<NeededText>,
    users: Vec<String>,
    corrections: Vec<String>,
    errors: Vec<String>,
    files: Vec<String>,
}

#[derive(Deserialize)]
struct NeededText {
    text: String,
    context: HashSet<String>,
}

#[derive(Clone, Copy, Default)]
struct Share {
    kept: usize,
    of: usize,
}

#[derive(Clone, Copy, Default)]
struct Score {
    samples: usize,
    tokens: usize,
    over: usize,
    found: Share,
    in_context: Share,
    users: Share,
    corrections: Share,
    errors: Share,
    files: Share,
    bytes: usize,
    time: Duration,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut paths: Vec<_> = fs::read_dir(&arguments.samples)
        .with_context(|| format!("cannot read the folder {}", arguments.samples.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.to_string_lossy().ends_with(".json.gz"))
        .filter(|path| {
            arguments
                .only
                .as_ref()
                .is_none_or(|part| path.to_string_lossy().contains(part))
        })
        .collect();
    paths.sort();
    if paths.is_empty() {
        bail!("no samples (*.json.gz) in {}", arguments.samples.display());
    }
    let scorer = Scorer::new()?;
    let mut totals: BTreeMap<(String, usize), Score> = BTreeMap::new();
    for path in &paths {
        let sample = read(path)?;
        if arguments.features {
            let cwd = sample.cwd.clone().unwrap_or_default();
            for (name, features) in crate::extractor(sample.request.get())?.name_features() {
                let local = name
                    .strip_prefix(&cwd)
                    .map_or(name.as_str(), |rest| rest.trim_start_matches('/'));
                let is_needed = sample.needed.iter().any(|needed| needed.text == local);
                let features: Vec<_> = features.iter().map(|value| format!("{value:.4}")).collect();
                println!(
                    "{},{},{}",
                    sample.id,
                    u8::from(is_needed),
                    features.join(",")
                );
            }
            continue;
        }
        for &budget in &arguments.budget {
            let start = Instant::now();
            let memory = crate::compact(sample.request.get(), budget)?;
            let mut score = scorer.score(&sample, &memory, budget, arguments.missing);
            score.time = start.elapsed();
            score.bytes = sample.request.get().len();
            if arguments.each {
                println!("{}", row(&sample.id, budget, &score));
            }
            if let Some(folder) = &arguments.dump {
                fs::create_dir_all(folder)?;
                fs::write(folder.join(format!("{}-{budget}.md", sample.id)), &memory)?;
            }
            for corpus in [sample.corpus.as_str(), "~all"] {
                totals
                    .entry((corpus.to_owned(), budget))
                    .or_default()
                    .add(&score);
            }
        }
    }
    println!(
        "{:28} {:>6} {:>4} {:>6} {:>4} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6}",
        "corpus",
        "budget",
        "n",
        "tokens",
        "over",
        "fur",
        "ctx",
        "users",
        "corr",
        "errors",
        "files",
        "MB/s"
    );
    for ((corpus, budget), score) in &totals {
        println!("{}", row(corpus.trim_start_matches('~'), *budget, score));
    }
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<Sample> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(fs::File::open(path)?)
        .read_to_string(&mut text)
        .with_context(|| format!("cannot unpack {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not a sample", path.display()))
}

fn row(name: &str, budget: usize, score: &Score) -> String {
    let share = |share: Share| {
        if share.of == 0 {
            "     -".to_owned()
        } else {
            format!("{:6.1}", 100.0 * share.kept as f64 / share.of as f64)
        }
    };
    format!(
        "{name:28} {budget:6} {:4} {:6} {:4} {} {} {} {} {} {} {:6.1}",
        score.samples,
        score.tokens / score.samples.max(1),
        score.over,
        share(score.found),
        share(score.in_context),
        share(score.users),
        share(score.corrections),
        share(score.errors),
        share(score.files),
        score.bytes as f64 / 1e6 / score.time.as_secs_f64()
    )
}

impl Score {
    fn add(&mut self, other: &Self) {
        let add = |to: &mut Share, from: Share| {
            to.kept += from.kept;
            to.of += from.of;
        };
        self.samples += other.samples;
        self.tokens += other.tokens;
        self.over += other.over;
        add(&mut self.found, other.found);
        add(&mut self.in_context, other.in_context);
        add(&mut self.users, other.users);
        add(&mut self.corrections, other.corrections);
        add(&mut self.errors, other.errors);
        add(&mut self.files, other.files);
        self.bytes += other.bytes;
        self.time += other.time;
    }
}

struct Scorer {
    identifiers: Vec<Regex>,
    word: regex::Regex,
    stop: HashSet<&'static str>,
}

impl Scorer {
    fn new() -> anyhow::Result<Self> {
        const PATTERNS: [&str; 15] = [
            r#"https?://[^\s"'<>)\]}`]+"#,
            r"[\w.+-]+@[\w-]+\.[\w.]+",
            r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
            r"(?:~|\.{1,2})?/?(?:[\w@.+-]+/)+[\w@.+-]*[\w+-]",
            r"[\w-][\w.-]*\.(?:go|py|rs|tsx?|jsx?|mjs|md|jsonl?|ya?ml|toml|sh|sql|html|css|txt|lock|mod|sum|proto|java|rb|php|cs|cpp|hpp|swift|kt|ini|cfg|log|csv|xml|gz|zip)\b",
            r"\bv?\d+\.\d+(?:\.\d+)+\b",
            r"(?<!\w)#\d{1,6}\b|\b[A-Z]{2,8}-\d{1,6}\b",
            r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]{2,}\b",
            r"(?<!\w)--[a-z][a-z0-9-]{2,}",
            r"\b[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\b",
            r"\b[A-Za-z]\w*_\w*[A-Za-z0-9]\b",
            r"\b[A-Za-z][a-z0-9]+[A-Z]\w+\b|\b[A-Z]{2,}[a-z]\w+\b",
            r"\b[a-z0-9]+(?:-[a-z0-9]+){2,}\b",
            r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b",
            r"(?<![\w.])\$?\d[\d,]*\.?\d*%?(?![\w])",
        ];
        const STOP: &str = "the a an and or of to in on for with from that this it is are was were be been as at by not no \
             but if then so we you i he she they them his her its our your can will would should could has have had do does did";
        Ok(Self {
            identifiers: PATTERNS
                .into_iter()
                .map(Regex::new)
                .collect::<Result<_, _>>()?,
            word: regex::Regex::new("[A-Za-z]{3,}")?,
            stop: STOP.split_whitespace().collect(),
        })
    }

    fn score(&self, sample: &Sample, memory: &str, budget: usize, list_missing: bool) -> Score {
        let tokens = crate::count(memory);
        let local = match &sample.cwd {
            Some(cwd) => memory
                .replace(&format!("{cwd}/"), "")
                .replace(cwd.as_str(), "."),
            None => memory.to_owned(),
        };
        let lines: Vec<&str> = local.split('\n').collect();
        let folded = fold(memory);
        let mut found = Share {
            kept: 0,
            of: sample.needed.len(),
        };
        let mut in_context = found;
        for needed in &sample.needed {
            if contains(&local, &needed.text) {
                found.kept += 1;
                if self.is_in_context(&lines, needed) {
                    in_context.kept += 1;
                } else if list_missing {
                    println!("  no context: {}", needed.text);
                }
            } else if list_missing {
                println!("  missing: {}", needed.text);
            }
        }
        let verbatim = |texts: &[String], length: usize| Share {
            kept: texts
                .iter()
                .filter(|text| {
                    folded.contains(&fold(text).chars().take(length).collect::<String>())
                })
                .count(),
            of: texts.len(),
        };
        Score {
            samples: 1,
            tokens,
            over: usize::from(tokens > budget),
            found,
            in_context,
            users: verbatim(&sample.users, 240),
            corrections: verbatim(&sample.corrections, 240),
            errors: verbatim(&sample.errors, 200),
            files: Share {
                kept: sample
                    .files
                    .iter()
                    .filter(|file| contains(&local, file))
                    .count(),
                of: sample.files.len(),
            },
            bytes: 0,
            time: Duration::ZERO,
        }
    }

    fn is_in_context(&self, lines: &[&str], needed: &NeededText) -> bool {
        lines.iter().any(|line| {
            line.match_indices(&needed.text).any(|(at, text)| {
                let before: String = line[..at]
                    .chars()
                    .rev()
                    .take(180)
                    .collect::<Vec<_>>()
                    .into_iter()
                    .rev()
                    .collect();
                let after: String = line[at + text.len()..].chars().take(180).collect();
                let mut around = format!("{before} {after}");
                for identifier in &self.identifiers {
                    around = identifier.replace_all(&around, " ").into_owned();
                }
                let words: HashSet<String> = self
                    .word
                    .find_iter(&around)
                    .map(|word| word.as_str().to_lowercase())
                    .collect();
                words
                    .iter()
                    .filter(|word| {
                        !self.stop.contains(word.as_str()) && needed.context.contains(*word)
                    })
                    .count()
                    >= 3
            })
        })
    }
}

fn fold(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn contains(text: &str, part: &str) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let mut from = 0;
    while let Some(at) = text[from..].find(part) {
        let start = from + at;
        if !is_word(text[..start].chars().next_back())
            && !is_word(text[start + part.len()..].chars().next())
        {
            return true;
        }
        from = start + text[start..].chars().next().map_or(1, char::len_utf8);
    }
    false
}
