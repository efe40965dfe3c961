use std::path::Path;

use throughline::engine::Mark;

use super::*;

fn parse(text: &str) -> Result<Config, Failure> {
    Config::parse(text, Path::new("/settings/config.toml"))
}

#[test]
fn every_key_takes_its_own_example() {
    for key in KEYS {
        let line = format!("{} = {}", key.name, key.example);
        assert!(parse(&line).is_ok(), "{line}: {:?}", parse(&line));
    }
}

#[test]
fn values_are_understood() {
    let config = parse(
        "model = \"m\"\nwindow = \"30k\"\nsoft = \"40%\"\nhard = 9_000\nsystem = \"p.md\"\ntools = [\"recall\"]\nstore = \"files\"\nwire = \"openai-chat\"\nmode = \"off\"\ncredential = \"env:MY_KEY\"\n",
    )
    .unwrap();
    assert_eq!(config.model.as_deref(), Some("m"));
    assert_eq!(config.window, Some(30_000));
    assert_eq!(config.soft, Some(MarkSetting(Mark::Permille(400))));
    assert_eq!(config.hard, Some(MarkSetting(Mark::Tokens(9_000))));
    assert_eq!(config.system.as_deref(), Some(Path::new("/settings/p.md")));
    assert_eq!(config.tools, ["recall"]);
    assert_eq!(config.wire, Some(Wire::OpenAiChat));
    assert_eq!(config.mode, Some(Mode::Off));
    assert_eq!(
        config.credential,
        Some(CredentialPlace::Env("MY_KEY".to_owned()))
    );
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let check = |text: &str, expected: &str| {
        let failure = parse(text).unwrap_err();
        assert_eq!(failure.message(), expected, "{text}");
    };
    check(
        "model = \"m\"\nmodle = \"m\"",
        "/settings/config.toml:2: there is no key \"modle\"",
    );
    check(
        "\nwindow = \"many\"",
        "/settings/config.toml:2: window: a number of tokens is needed, such as 30000 or \"30k\"",
    );
    check(
        "[model]\nname = 1",
        "/settings/config.toml:1: model is no value",
    );
    check(
        "thinking = \"loud\"",
        "/settings/config.toml:1: thinking: \"loud\" is none of show, dim, hide",
    );
    check(
        "hard = \"120%\"",
        "/settings/config.toml:1: hard: a share is from 1% to 99%",
    );
    assert!(parse("model = ").is_err());
}

/// The user may have written the key itself there, and errors are shown to others.
#[test]
fn a_key_that_stands_in_the_file_is_not_repeated() {
    let failure = parse("credential = \"sk-not-for-others\"").unwrap_err();
    assert!(
        !format!("{failure:?}").contains("not-for-others"),
        "{failure:?}"
    );
}

#[test]
fn the_nearest_key_is_offered() {
    let check = |name: &str, expected: Option<&str>| {
        assert_eq!(nearest(name).map(|key| key.name), expected, "{name}");
    };
    check("modell", Some("model"));
    check("base-url", Some("base_url"));
    check("baseurl", Some("base_url"));
    check("max_token", Some("max_tokens"));
    check("colors", Some("colours"));
    check("zzz", None);
}

/// The documentation is made from the table.
#[test]
fn the_documentation_has_every_key() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    let text = std::fs::read_to_string(path).unwrap();
    let begin = text.find("| key | what it is |").unwrap();
    let end = text.find("\n\n## To whom").unwrap();
    let table = keys::table();
    if env::var_os("WRITE_DOCS").is_some() {
        let text = format!("{}{}{}", &text[..begin], table.trim_end(), &text[end..]);
        std::fs::write(path, text).unwrap();
    } else {
        assert_eq!(&text[begin..end], table.trim_end(), "run with WRITE_DOCS=1");
    }
}
