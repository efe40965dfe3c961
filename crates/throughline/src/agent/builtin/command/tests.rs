use throughline_providers::client::Client;
use throughline_transcript::wire::Wire;

use super::*;

/// Where the tool is called. No session is needed for it, so that none is sent to.
async fn context() -> CallContext {
    let client = Client::builder(Wire::OpenAiChat, "http://127.0.0.1:9");
    let session = crate::Session::builder(client.build().unwrap(), "none");
    CallContext {
        session: session.start().await.unwrap(),
        call_id: "call".to_owned(),
        cancelled: Default::default(),
    }
}

async fn run(command: &str, timeout_s: Option<u64>) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::open(folder.path()).unwrap();
    let input = CommandInput {
        command: command.to_owned(),
        timeout_s,
    };
    let called = run_command(&root).call(input, context().await).await;
    called.map_err(|error| error.message().to_owned())
}

#[tokio::test]
async fn both_streams_come_in_order_and_failures_with_their_output() {
    let streams = "echo one; echo two >&2; echo three";
    assert_eq!(run(streams, None).await.unwrap(), "one\ntwo\nthree\n");
    assert_eq!(
        run("printf x; exit 3", None).await.unwrap_err(),
        "x\nExit code: 3"
    );
    let broken = run("if then", None).await.unwrap_err();
    assert!(broken.to_lowercase().contains("syntax error"), "{broken}");
    assert_eq!(run("cat", None).await.unwrap(), "");
    assert_eq!(
        run("pwd | grep -c tmp; true", None)
            .await
            .unwrap()
            .lines()
            .count(),
        1
    );
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended_with_everything_it_has_started() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    let command = format!(
        "sleep 1000 & echo $! > {0}; echo begun; sleep 1000",
        file.display()
    );
    let error = run(&command, Some(1)).await.unwrap_err();
    assert!(error.starts_with("begun\nStopped after 1 s"), "{error}");
    ended(&file).await;
}

#[tokio::test]
async fn what_is_left_in_the_background_is_ended_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    let command = format!("sleep 1000 & echo $! > {0}; echo begun", file.display());
    assert_eq!(run(&command, None).await.unwrap(), "begun\n");
    ended(&file).await;
}

#[tokio::test]
async fn a_call_that_is_dropped_ends_its_command() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    let command = format!("echo $$ > {0}; sleep 1000", file.display());
    let call = tokio::spawn(async move { run(&command, None).await });
    while !std::fs::read_to_string(&file).is_ok_and(|pid| pid.ends_with('\n')) {
        tokio::task::yield_now().await;
    }
    call.abort();
    ended(&file).await;
}

/// Waits until the process whose id is in a file has ended.
async fn ended(file: &std::path::Path) {
    let pid = std::fs::read_to_string(file)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    let stat = format!("/proc/{}/stat", pid.as_raw_nonzero());
    // A dead process that has not been waited for is still listed.
    while rustix::process::test_kill_process(pid).is_ok()
        && !std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") Z "))
    {
        tokio::task::yield_now().await;
    }
}

#[test]
fn a_long_output_keeps_its_beginning_and_its_end() {
    let mut output = Output::default();
    for number in 0..400_000 {
        output.push(format!("{number:07}\n").as_bytes());
    }
    let text = output.into_text();
    assert!(text.starts_with("0000000\n") && text.ends_with("0399999\n"));
    assert!(
        text.contains("\n[... 2151424 bytes were left out"),
        "{}",
        text.len()
    );
    assert!(text.len() < 2 * OUTPUT_HALF_BYTES_MAX + 100);
}

#[tokio::test]
async fn a_summary_shows_the_whole_command_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::open(folder.path()).unwrap();
    let asked = |command: &str| {
        let input = CommandInput {
            command: command.to_owned(),
            timeout_s: None,
        };
        run_command(&root).approval(&input)
    };
    let needed = |summary: String| Approval::Needed { summary };
    assert_eq!(
        asked("ls\nrm -r x\n"),
        needed("run: ls\\nrm -r x".to_owned())
    );
    // The end is shown too, however long the text is.
    let padded = format!("echo {}; rm -r x", "a".repeat(600));
    assert_eq!(asked(&padded), needed(format!("run: {padded}")));
    let padded = format!("echo {}; rm -r x", "a".repeat(60_000));
    let Approval::Needed { summary } = asked(&padded) else {
        panic!("no approval is needed");
    };
    assert!(summary.starts_with("run: echo aaa"), "{summary}");
    assert!(summary.ends_with("aaa; rm -r x"), "{summary}");
    assert!(summary.len() < 5_000);
}
