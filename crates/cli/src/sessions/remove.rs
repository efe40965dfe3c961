//! `throughline sessions delete` and `gc`: what is taken away for good.

use std::io::{self, BufRead, IsTerminal};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use throughline::folder::Folder;
use throughline::store::{ErrorKind, SessionId, SessionInfo, Store};

use super::archive::{self, shortened_ids};
use crate::arguments::sessions as arguments;
use crate::config::Config;
use crate::error::{self, Failure, Kind};
use crate::output::Console;
use crate::{storage, words};

pub(super) async fn delete(
    arguments: &arguments::Delete,
    config: &Config,
    store: &dyn Store,
    console: &Console,
) -> Result<(), Failure> {
    let mut sessions: Vec<SessionInfo> = Vec::new();
    for wanted in &arguments.ids {
        let session = storage::find(store, wanted).await?;
        if !sessions.contains(&session) {
            sessions.push(session);
        }
    }
    if !arguments.yes && !is_agreed(&sessions, store, console).await? {
        return Ok(());
    }
    for session in &sessions {
        store.delete(&session.id).await.map_err(storage::failure)?;
        remove_folder(&session.id, config, console);
        console.print(&format!("{} is deleted\n", session.id))?;
    }
    Ok(())
}

/// Removes the session's folder for people, if sessions have one.
fn remove_folder(id: &SessionId, config: &Config, console: &Console) {
    let Some(root) = &config.session_folder else {
        return;
    };
    let path = root.join(id.as_str());
    if let Err(error) = Folder::new(&path).remove() {
        let (path, reason) = (path.display(), error::chain(&error));
        console.warning(&format!("{path} could not be removed: {reason}"));
    }
}

pub(super) async fn gc(
    arguments: &arguments::Gc,
    config: &Config,
    console: &Console,
) -> Result<(), Failure> {
    let deleted = storage::using(config, async |store| {
        delete_old(arguments, config, store.as_ref(), console).await
    });
    let Some(deleted) = deleted.await? else {
        return Ok(());
    };
    let counted = words::counted(deleted, "session");
    match storage::shrink(config).await {
        Ok(freed) => console.print(&format!(
            "{counted} deleted, {} kB given back\n",
            words::number(freed / 1024)
        )),
        // On a full disk there is no room to make the database smaller.
        Err(failure) if deleted > 0 => {
            console.print(&format!("{counted} deleted\n"))?;
            console.warning(&format!(
                "their space is kept for new sessions, not returned to the disk: {}",
                failure.message()
            ));
            Ok(())
        }
        Err(failure) => Err(failure),
    }
}

/// How many were deleted; `None` if none was to be.
async fn delete_old(
    arguments: &arguments::Gc,
    config: &Config,
    store: &dyn Store,
    console: &Console,
) -> Result<Option<usize>, Failure> {
    let all = storage::sessions(store).await?;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let doomed = doomed(all, now, arguments.older_than, arguments.keep);
    if arguments.dry_run {
        for session in &doomed {
            console.print(&format!("{}\n", line(session, store).await?))?;
        }
        let count = words::counted(doomed.len(), "session");
        console.note(&format!("{count} would be deleted"));
        return Ok(None);
    }
    if !doomed.is_empty() && !arguments.yes && !is_agreed(&doomed, store, console).await? {
        return Ok(None);
    }
    let mut deleted = 0;
    for session in &doomed {
        match store.delete(&session.id).await {
            Ok(()) => {
                deleted += 1;
                remove_folder(&session.id, config, console);
            }
            Err(error) if error.kind() == ErrorKind::Busy => {
                console.warning(&format!("{} is open elsewhere and stays", session.id));
            }
            Err(error) => return Err(storage::failure(error)),
        }
    }
    Ok(Some(deleted))
}

/// The sessions that are too old, without the newest ones that are kept. `all` are the last changed first.
fn doomed(
    all: Vec<SessionInfo>,
    now: Duration,
    older_than: Option<Duration>,
    keep: Option<usize>,
) -> Vec<SessionInfo> {
    if older_than.is_none() && keep.is_none() {
        return Vec::new();
    }
    let before = now.saturating_sub(older_than.unwrap_or_default());
    let before_ms = i64::try_from(before.as_millis()).unwrap_or(i64::MAX);
    all.into_iter()
        .skip(keep.unwrap_or(0))
        .filter(|session| session.updated_ms <= before_ms)
        .collect()
}

/// Asks the user.
async fn is_agreed(
    sessions: &[SessionInfo],
    store: &dyn Store,
    console: &Console,
) -> Result<bool, Failure> {
    const SHOWN_MAX: usize = 20;
    if !io::stdin().is_terminal() || !console.is_stderr_terminal {
        return Err(Failure::new(
            Kind::Arguments,
            "deletion needs a confirmation, and there is no terminal",
        )
        .hint("say --yes"));
    }
    for session in sessions.iter().take(SHOWN_MAX) {
        console.note(&line(session, store).await?);
    }
    let count = words::counted(sessions.len(), "session");
    console.note(&format!("delete {count} for good? [y/N]"));
    let mut answer = String::new();
    io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(|error| Failure::new(Kind::Input, error.to_string()))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

async fn line(session: &SessionInfo, store: &dyn Store) -> Result<String, Failure> {
    let ids = shortened_ids(std::slice::from_ref(session));
    let title = archive::title(session, store).await?;
    Ok(format!(
        "{}  {}  {}",
        ids.of(&session.id),
        words::minute(session.updated_ms).unwrap_or_default(),
        crate::terminal::harmless(&title)
    ))
}

#[cfg(test)]
mod tests {
    use throughline::store::SessionId;

    use super::*;

    #[test]
    fn old_sessions_go_and_the_newest_stay() {
        const DAY: Duration = Duration::from_secs(24 * 3600);
        let session = |id: &str, updated_days: i64| SessionInfo {
            id: SessionId::new(id).unwrap(),
            parent: None,
            wire: String::new(),
            model: String::new(),
            title: String::new(),
            created_ms: 0,
            updated_ms: updated_days * 24 * 3600 * 1000,
            message_count: 0,
            tokens: 0,
            memory_version: 0,
        };
        let all = || vec![session("new", 99), session("old", 50), session("older", 10)];
        let check = |older_than: Option<u32>, keep: Option<usize>, expected: &[&str]| {
            let older_than = older_than.map(|days| DAY * days);
            let doomed = doomed(all(), DAY * 100, older_than, keep);
            let ids: Vec<&str> = doomed.iter().map(|session| session.id.as_str()).collect();
            assert_eq!(ids, expected, "{older_than:?} {keep:?}");
        };
        check(None, None, &[]);
        check(Some(30), None, &["old", "older"]);
        check(Some(60), None, &["older"]);
        check(None, Some(1), &["old", "older"]);
        check(Some(30), Some(2), &["older"]);
        check(Some(30), Some(9), &[]);
    }
}
