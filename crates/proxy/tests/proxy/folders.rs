//! Each session has a folder with its transcript and its memory, for people to read and edit.

use std::fs;

use throughline_proxy::Config;
use throughline_simulator::Options;
use throughline_transcript::wire::Wire;

use crate::admin::swapped;
use crate::world::{Client, World, config};

async fn world(place: &std::path::Path) -> World {
    let config = Config {
        session_folder: Some(place.to_owned()),
        ..config()
    };
    World::with(Options::new(9).without_latency(), config).await
}

#[tokio::test(start_paused = true)]
async fn an_edited_memory_file_is_in_the_next_request_of_its_session() {
    let place = tempfile::tempdir().unwrap();
    let mut world = world(place.path()).await;
    let mut first = Client::new(Wire::Anthropic);
    let mut second = Client::new(Wire::OpenAiChat);
    let ids = [
        swapped(&world, &mut first, 1).await,
        swapped(&world, &mut second, 1).await,
    ];
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 2);
    let file = |id: &str, name: &str| place.path().join(id).join(name);
    for (id, client) in ids.iter().zip([&first, &second]) {
        let transcript = fs::read_to_string(file(id, "transcript.jsonl")).unwrap();
        assert_eq!(transcript.lines().count(), client.messages.len());
    }
    let path = file(&ids[0], "session-memory.md");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("eu-north-3"), "{text}");
    fs::write(&path, text.replace("eu-north-3", "eu-south-1")).unwrap();
    second.say(&world, "Go on.").await;
    assert!(world.last_body().contains("eu-north-3"));
    first.say(&world, "Go on.").await;
    let body = world.last_body();
    assert!(
        body.contains("eu-south-1") && !body.contains("eu-north-3"),
        "{body}"
    );
    world.proxy.settle(std::time::Duration::from_secs(5)).await;
    assert!(fs::read_to_string(&path).unwrap().contains("eu-south-1"));

    // An edit while no proxy runs is found by the next one.
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("eu-south-1", "eu-west-2")).unwrap();
    world.restart().await;
    first.say(&world, "And now?").await;
    assert!(world.last_body().contains("eu-west-2"));
    assert_eq!(world.refused(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_folder_that_cannot_be_written_stops_no_request() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("file");
    fs::write(&root, "").unwrap();
    let world = world(&root).await;
    let mut client = Client::new(Wire::Anthropic);
    swapped(&world, &mut client, 1).await;
    let got = client.say(&world, "Go on.").await;
    assert_eq!(got.told("x-throughline"), Some("rewritten"));
    assert_eq!(world.refused(), 0);
}
