//! What a program does to the files that it is given.

use super::super::tools::FileUse;
use super::words::Word;

/// Something that a simple command does.
pub(super) enum Deed<'w> {
    File(&'w Word, FileUse),
    Path(String, FileUse),
    /// Goes to a folder; `None` where that is not known.
    Enter(Option<&'w Word>),
    /// Applies a patch.
    Patch(&'w str),
}

/// What else a simple command is.
pub(super) enum Inner {
    /// It runs commands, maybe on another machine.
    Script {
        script: String,
        host: Option<String>,
    },
    /// It only asks whether something is so.
    Test,
    /// It ends the whole.
    Exit,
}

/// What becomes of a here-document.
pub(super) enum DocumentUse {
    Text,
    Patch,
    Script { host: Option<String> },
}

/// Programs that run the rest of their words; with those of their options that take a value.
const WRAPPERS: &[(&str, &[&str])] = &[
    ("sudo", &["-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T"]),
    ("doas", &["-u", "-C"]),
    ("env", &["-u", "--unset", "-C", "--chdir"]),
    ("timeout", &["-k", "--kill-after", "-s", "--signal"]),
    ("gtimeout", &["-k", "--kill-after", "-s", "--signal"]),
    ("nice", &["-n", "--adjustment"]),
    ("ionice", &["-c", "-n"]),
    ("stdbuf", &["-i", "-o", "-e"]),
    ("nohup", &[]),
    ("time", &["-f", "-o"]),
    ("setsid", &[]),
    ("command", &[]),
    ("builtin", &[]),
    ("exec", &["-a"]),
    ("unbuffer", &[]),
    ("caffeinate", &["-t", "-w"]),
    ("chronic", &[]),
];

const SSH_VALUED: &[&str] = &[
    "-p", "-i", "-o", "-l", "-F", "-J", "-L", "-R", "-D", "-W", "-b", "-c", "-E", "-e", "-m", "-S",
    "-w", "-B",
];

/// The words from the program on that really runs: without assignments and what only starts it.
pub(super) fn unwrapped(mut words: &[Word]) -> &[Word] {
    loop {
        let Some(first) = words.first() else {
            return words;
        };
        if is_assignment(&first.text) {
            words = &words[1..];
            continue;
        }
        let name = base(&first.text);
        let Some((_, valued)) = WRAPPERS.iter().find(|(wrapper, _)| *wrapper == name) else {
            return words;
        };
        if name == "command" && words.get(1).is_some_and(|word| word.text.starts_with("-v")) {
            return words;
        }
        words = skip_options(&words[1..], valued);
        if name.ends_with("timeout") {
            words = words.get(1..).unwrap_or_default();
        }
    }
}

/// What `words` do, told to `tell`; returns what else they are.
pub(super) fn read<'w>(words: &'w [Word], tell: &mut dyn FnMut(Deed<'w>)) -> Option<Inner> {
    let words = unwrapped(words);
    let (program, rest) = words.split_first()?;
    // A bracket is a pattern elsewhere.
    let program = match program.text.as_str() {
        "[" => "[",
        _ => base(program.known()?),
    };
    let has = |flags: &[&str]| rest.iter().any(|word| flags.contains(&word.text.as_str()));
    if has(&["--help", "--dry-run"]) {
        return None;
    }
    match program {
        "test" | "[" | "[[" | "grep" | "egrep" | "rg" | "which" | "command" | "false" | "cmp"
        | "diff" => return Some(Inner::Test),
        "exit" | "return" | "die" => return Some(Inner::Exit),
        "bash" | "sh" | "zsh" | "dash" | "ksh" | "ash" | "fish" => return shell_script(rest),
        "eval" => return Some(script(rest, None)),
        "ssh" => return remote(rest),
        "docker" | "podman" | "kubectl" | "nerdctl" => return contained(rest),
        "cd" | "pushd" => {
            let folders = operands(rest, &[]);
            tell(Deed::Enter(folders.first().copied()));
        }
        "popd" => tell(Deed::Enter(None)),
        "apply_patch" | "applypatch" => {
            for word in rest.iter().filter(|word| word.text.contains("*** ")) {
                tell(Deed::Patch(&word.text));
            }
        }
        "rm" | "unlink" | "rmdir" | "trash" | "shred" => {
            each(operands(rest, &["-n", "-s"]), FileUse::Deleted, tell);
        }
        "mv" => copied(rest, true, tell),
        "cp" | "scp" => copied(rest, false, tell),
        "install" if has(&["-d", "--directory"]) => {
            let valued = ["-m", "--mode", "-o", "-g"];
            each(operands(rest, &valued), FileUse::Created, tell);
        }
        "install" => copied(rest, false, tell),
        "rsync" if !has(&["-n"]) => {
            let valued = ["-e", "--rsh", "-f", "--filter", "--exclude", "--include"];
            let paths = operands(rest, &valued);
            if let (2.., Some(target)) = (paths.len(), paths.last()) {
                tell(Deed::File(target, FileUse::Changed));
            }
        }
        "tee" | "sponge" => each(operands(rest, &[]), FileUse::Changed, tell),
        "touch" => each(
            operands(rest, &["-d", "-r", "-t", "--date", "--reference"]),
            FileUse::Created,
            tell,
        ),
        "mkdir" => each(operands(rest, &["-m", "--mode"]), FileUse::Created, tell),
        "truncate" => each(
            operands(rest, &["-s", "--size", "-r"]),
            FileUse::Changed,
            tell,
        ),
        "ln" => {
            let paths = operands(rest, &["-S", "-t"]);
            match paths.as_slice() {
                [target] => named_like(target, ".", tell),
                [_, link] if !link.text.ends_with('/') && link.text != "." => {
                    tell(Deed::File(link, FileUse::Created));
                }
                [target, folder] => named_like(target, &folder.text, tell),
                _ => {}
            }
        }
        "sed" | "gsed" => edited(rest, tell),
        "perl" | "ruby" => {
            let is_in_place = rest.iter().any(|word| {
                let flag = &word.text;
                flag.starts_with('-')
                    && !flag.starts_with("--")
                    && flag.contains('i')
                    && flag.contains(['p', 'n'])
                    || flag == "-i"
                    || flag.starts_with("-i.")
            });
            let has_script = |word: &Word| {
                word.text.starts_with('-')
                    && !word.text.starts_with("--")
                    && word.text.ends_with(['e', 'E'])
            };
            if is_in_place && let Some(script) = rest.iter().position(has_script) {
                let files = operands(rest.get(script + 2..).unwrap_or_default(), &["-e"]);
                each(files, FileUse::Changed, tell);
            }
        }
        "git" => git(rest, tell),
        "dd" => {
            for word in rest {
                if let Some(path) = word.known().and_then(|text| text.strip_prefix("of=")) {
                    tell(Deed::Path(path.to_owned(), FileUse::Created));
                }
            }
        }
        "curl" => output_option(rest, 'o', "--output", tell),
        "wget" => output_option(rest, 'O', "--output-document", tell),
        "patch" => {
            let paths = operands(
                rest,
                &["-p", "-i", "-d", "-o", "-r", "-B", "-D", "-F", "-z"],
            );
            if let Some(file) = paths.first() {
                tell(Deed::File(file, FileUse::Changed));
            }
        }
        "tar" => archive(rest, tell),
        "zip" => {
            if let Some(archive) = operands(rest, &[]).first() {
                tell(Deed::File(archive, FileUse::Created));
            }
        }
        _ => {}
    }
    None
}

/// What becomes of a here-document that is given to `words`.
pub(super) fn use_of_document(words: &[Word]) -> DocumentUse {
    let words = unwrapped(words);
    let Some((program, rest)) = words.split_first() else {
        return DocumentUse::Text;
    };
    let is_option = |word: &Word| word.text.starts_with('-');
    match base(&program.text) {
        "apply_patch" | "applypatch" | "patch" => DocumentUse::Patch,
        "git"
            if rest
                .iter()
                .any(|word| matches!(word.text.as_str(), "apply" | "am")) =>
        {
            DocumentUse::Patch
        }
        "bash" | "sh" | "zsh" | "dash" if rest.iter().all(is_option) => {
            let is_command = |word: &Word| word.text.contains('c');
            if rest.iter().any(is_command) {
                DocumentUse::Text
            } else {
                DocumentUse::Script { host: None }
            }
        }
        "ssh" => {
            let rest = skip_options(rest, SSH_VALUED);
            let is_shell = rest
                .get(1)
                .is_none_or(|word| base(&word.text).ends_with("sh"));
            match rest.first() {
                Some(host) if is_shell => DocumentUse::Script {
                    host: Some(host.text.clone()),
                },
                _ => DocumentUse::Text,
            }
        }
        _ => DocumentUse::Text,
    }
}

pub(super) fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

pub(super) fn is_assignment(text: &str) -> bool {
    let is_name = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    text.split_once('=')
        .is_some_and(|(name, _)| is_name(name.trim_end_matches('+')))
}

/// The words behind the options at the start; those of `valued` take the next word with them.
fn skip_options<'w>(mut words: &'w [Word], valued: &[&str]) -> &'w [Word] {
    while let Some(first) = words.first() {
        let text = first.text.as_str();
        if text == "--" {
            return &words[1..];
        }
        if !text.starts_with('-') || text.len() < 2 {
            break;
        }
        let taken = 1 + usize::from(valued.contains(&text));
        words = words.get(taken..).unwrap_or_default();
    }
    words
}

/// The words that are no options.
fn operands<'w>(words: &'w [Word], valued: &[&str]) -> Vec<&'w Word> {
    let mut found = Vec::new();
    let mut words = words.iter();
    let mut is_over = false;
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        if !is_over && text == "--" {
            is_over = true;
        } else if !is_over && text.starts_with('-') && text.len() > 1 {
            if valued.contains(&text) {
                words.next();
            }
        } else {
            found.push(word);
        }
    }
    found
}

fn each<'w>(words: Vec<&'w Word>, file_use: FileUse, tell: &mut dyn FnMut(Deed<'w>)) {
    for word in words {
        tell(Deed::File(word, file_use));
    }
}

/// A file in `folder` with the name of `like`.
fn named_like<'w>(like: &Word, folder: &str, tell: &mut dyn FnMut(Deed<'w>)) {
    let folder = folder.trim_end_matches('/');
    for path in like.paths() {
        let name = base(path.trim_end_matches('/')).to_owned();
        let is_name = !name.is_empty() && !name.starts_with('.');
        match folder {
            "." | "" if is_name => tell(Deed::Path(name, FileUse::Created)),
            folder if is_name => tell(Deed::Path(format!("{folder}/{name}"), FileUse::Created)),
            _ => {}
        }
    }
}

/// `cp` and `mv`: whether the target is a folder can be told only by its form.
fn copied<'w>(words: &'w [Word], is_move: bool, tell: &mut dyn FnMut(Deed<'w>)) {
    const VALUED: &[&str] = &[
        "-S",
        "--suffix",
        "-m",
        "--mode",
        "-o",
        "-g",
        "-P",
        "-i",
        "-t",
        "--target-directory",
    ];
    let of_move = &VALUED[..2];
    let valued = if is_move { of_move } else { VALUED };
    // `-i` and `-P` take a value for `scp` only, whose targets are hosts.
    let valued: Vec<&str> = valued
        .iter()
        .copied()
        .filter(|flag| !matches!(*flag, "-i" | "-P"))
        .collect();
    let folder = words
        .iter()
        .position(|word| matches!(word.text.as_str(), "-t" | "--target-directory"))
        .and_then(|at| words.get(at + 1));
    let mut sources = operands(words, &valued);
    let target = match folder {
        Some(folder) => {
            sources.retain(|source| !std::ptr::eq(*source, folder));
            Some(folder)
        }
        None => sources.pop().filter(|_| !sources.is_empty()),
    };
    let Some(target) = target else { return };
    if is_move {
        for source in &sources {
            tell(Deed::File(source, FileUse::Moved));
        }
    }
    let Some(path) = target.known() else {
        each(vec![target], FileUse::Created, tell);
        return;
    };
    let is_one = sources.len() == 1 && sources[0].known().is_some();
    if folder.is_some() || path.ends_with('/') || path == "." || !is_one {
        for source in &sources {
            named_like(source, path, tell);
        }
        return;
    }
    let has_ending = |path: &str| base(path).trim_start_matches('.').contains('.');
    let file_use = if has_ending(path) {
        FileUse::Created
    } else {
        FileUse::Changed
    };
    tell(Deed::File(target, file_use));
}

/// `sed -i`.
fn edited<'w>(words: &'w [Word], tell: &mut dyn FnMut(Deed<'w>)) {
    let is_short = |text: &str| text.starts_with('-') && !text.starts_with("--");
    let is_in_place = |word: &Word| {
        let text = word.text.as_str();
        text.starts_with("--in-place")
            || (is_short(text)
                && text
                    .find('i')
                    .is_some_and(|at| text[1..at].bytes().all(|flag| b"nErsuz".contains(&flag))))
    };
    let Some(at) = words.iter().position(is_in_place) else {
        return;
    };
    let is_script = |word: &Word| {
        let text = word.text.as_str();
        text.starts_with("--expression")
            || text.starts_with("--file")
            || (is_short(text) && text.ends_with(['e', 'f']) && text != "-i")
    };
    let has_script = words.iter().any(is_script);
    let valued: Vec<&str> = words
        .iter()
        .filter(|word| is_script(word) && !word.text.contains('='))
        .map(|word| word.text.as_str())
        .collect();
    let mut files = operands(words, &valued);
    // Where `-i` wants a suffix, an empty one is a word.
    let is_suffix = |word: &&Word| {
        word.text.is_empty()
            && words
                .get(at + 1)
                .is_some_and(|next| std::ptr::eq(*word, next))
    };
    files.retain(|word| !is_suffix(word));
    if files.len() > 2 && files[0].text.starts_with('.') && !files[0].text.contains('/') {
        files.remove(0);
    }
    let script = usize::from(!has_script);
    each(
        files.split_off(script.min(files.len())),
        FileUse::Changed,
        tell,
    );
}

fn git<'w>(words: &'w [Word], tell: &mut dyn FnMut(Deed<'w>)) {
    const VALUED: &[&str] = &["-C", "-c", "--git-dir", "--work-tree"];
    let folder = words
        .iter()
        .take_while(|word| word.text.starts_with('-'))
        .position(|word| word.text == "-C")
        .and_then(|at| words.get(at + 1));
    if folder.is_some() {
        // Its paths are relative to another folder.
        return;
    }
    let words = skip_options(words, VALUED);
    let Some((command, rest)) = words.split_first() else {
        return;
    };
    if rest.iter().any(|word| word.text == "-n") {
        return;
    }
    match command.text.as_str() {
        "rm" => each(operands(rest, &[]), FileUse::Deleted, tell),
        "mv" => copied(rest, true, tell),
        "restore" if rest.iter().any(|word| word.text == "--staged") => {}
        "restore" => each(operands(rest, &["-s", "--source"]), FileUse::Changed, tell),
        "checkout" => {
            if let Some(at) = rest.iter().position(|word| word.text == "--") {
                each(rest[at + 1..].iter().collect(), FileUse::Changed, tell);
            }
        }
        "clone" => {
            let valued = ["-b", "--branch", "--depth", "-o", "--origin", "-c", "-j"];
            if let [_, folder] = operands(rest, &valued)[..] {
                tell(Deed::File(folder, FileUse::Created));
            }
        }
        _ => {}
    }
}

/// An option that names the file for the output: `-o FILE`, `-sSLo FILE`, `--output=FILE`.
fn output_option<'w>(words: &'w [Word], short: char, long: &str, tell: &mut dyn FnMut(Deed<'w>)) {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        let Some(flags) = text.strip_prefix('-') else {
            continue;
        };
        if let Some(rest) = text.strip_prefix(long) {
            match (rest.strip_prefix('='), word.known()) {
                (Some(path), Some(_)) => tell(Deed::Path(path.to_owned(), FileUse::Created)),
                (None, _) if rest.is_empty() => {
                    words.next().into_iter().for_each(|path| {
                        tell(Deed::File(path, FileUse::Created));
                    });
                }
                _ => {}
            }
        } else if !flags.starts_with('-')
            && let Some((before, path)) = flags.split_once(short)
            && before.bytes().all(|flag| b"fgikLnNqSsv#".contains(&flag))
        {
            if path.is_empty() {
                words.next().into_iter().for_each(|path| {
                    tell(Deed::File(path, FileUse::Created));
                });
            } else if word.known().is_some() {
                tell(Deed::Path(path.to_owned(), FileUse::Created));
            }
        }
    }
}

/// `tar` that makes an archive.
fn archive<'w>(words: &'w [Word], tell: &mut dyn FnMut(Deed<'w>)) {
    let Some((flags, rest)) = words.split_first() else {
        return;
    };
    let flags = flags.text.trim_start_matches('-');
    if flags.contains('c')
        && flags.ends_with('f')
        && let Some(path) = rest.first()
    {
        tell(Deed::File(path, FileUse::Created));
    }
}

/// Words as commands. They have lost their quotes: those that need some get them back.
fn script(words: &[Word], host: Option<String>) -> Inner {
    let words = words.iter().map(|word| word.text.as_str());
    Inner::Script {
        script: words.collect::<Vec<_>>().join(" "),
        host,
    }
}

/// `bash -lc 'commands'`.
fn shell_script(words: &[Word]) -> Option<Inner> {
    let at = words.iter().position(|word| {
        let text = word.text.as_str();
        text.starts_with('-') && !text.starts_with("--") && text.contains('c')
    })?;
    let script = words.get(at + 1)?.text.clone();
    Some(Inner::Script { script, host: None })
}

/// `ssh host 'commands'`.
fn remote(words: &[Word]) -> Option<Inner> {
    let words = skip_options(words, SSH_VALUED);
    let (host, rest) = words.split_first()?;
    // Some options may stand behind the host.
    let rest = skip_options(rest, SSH_VALUED);
    let host = host.known()?;
    (!rest.is_empty()).then(|| script(rest, Some(host.to_owned())))
}

/// `docker exec container command`, `docker compose exec service command`, `kubectl exec pod -- command`.
fn contained(words: &[Word]) -> Option<Inner> {
    const VALUED: &[&str] = &[
        "-e",
        "--env",
        "-u",
        "--user",
        "-w",
        "--workdir",
        "-n",
        "--namespace",
        "-c",
        "--container",
        "-f",
        "--file",
    ];
    let at = words.iter().take(6).position(|word| word.text == "exec")?;
    let words = skip_options(&words[at + 1..], VALUED);
    let (container, rest) = words.split_first()?;
    let rest = skip_options(rest, VALUED);
    let host = container.known()?.to_owned();
    let rest = quoted_again(rest);
    Some(Inner::Script {
        script: rest,
        host: Some(host),
    })
}

fn quoted_again(words: &[Word]) -> String {
    let words = words.iter().map(|word| quoted(&word.text));
    words.collect::<Vec<_>>().join(" ")
}

/// A word as it is written in a command line.
pub(in super::super) fn quoted(word: &str) -> String {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || b"_-./=:,+@%^".contains(&byte) || byte >= 0x80;
    if !word.is_empty() && word.bytes().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
