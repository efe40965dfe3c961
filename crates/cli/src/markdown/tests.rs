use super::*;

fn look(columns: usize) -> Look {
    Look {
        columns,
        rows: 24,
        has_colours: true,
        has_unicode: true,
    }
}

/// What a terminal shows, and the same with styles, after `pieces` have come in.
fn screen(look: Look, pieces: &[&str]) -> vt100::Parser {
    let mut rendering = Rendering::new(look);
    let rows = u16::try_from(look.rows).unwrap();
    let columns = u16::try_from(look.columns).unwrap();
    let mut terminal = vt100::Parser::new(rows, columns, 0);
    let mut show = |text: String| terminal.process(text.replace('\n', "\r\n").as_bytes());
    for piece in pieces {
        show(rendering.push(piece));
    }
    show(rendering.end());
    terminal
}

fn shown(look: Look, pieces: &[&str]) -> String {
    let contents = screen(look, pieces).screen().contents();
    contents.trim_end().to_owned()
}

fn one_by_one(text: &str) -> Vec<String> {
    text.chars().map(String::from).collect()
}

const DOCUMENT: &str = "\
# A *title*

Some **bold**, *italic*, __bold__, _italic_ and `code with **stars**` in a paragraph that is longer than the screen is \
wide. See [the manual](https://example.org/a_b_c).

- an item that goes on and on, so that it needs a second row on the screen
  - one inside
10. the tenth

> quoted **words**

```rust
let snake_case_name = 2 * 3 * 4; // a line that is longer than forty columns
```

a_name_with_parts, 2 * 3 * 4, **not closed

| a | b |
---
Ende: ä ö ü 日本語 🦀";

#[test]
fn markers_become_styles() {
    let look = look(42);
    let expected = "\
A title

Some bold, italic, bold, italic and code
with **stars** in a paragraph that is
longer than the screen is wide. See the
manual (https://example.org/a_b_c).

• an item that goes on and on, so that it
  needs a second row on the screen
  • one inside
10. the tenth

│ quoted words

```rust
let snake_case_name = 2 * 3 * 4; // a lin
e that is longer than forty columns
```

a_name_with_parts, 2 * 3 * 4, **not closed

| a | b |
────────────────────────────────────────
Ende: ä ö ü 日本語 🦀";
    let tall = Look { rows: 60, ..look };
    assert_eq!(
        shown(tall, &[DOCUMENT]),
        expected.replace("2 * 3 * 4, **not closed", "2 * 3 * 4, **not\nclosed")
    );
    let terminal = screen(tall, &[DOCUMENT]);
    let cell = |row, column| terminal.screen().cell(row, column).unwrap();
    assert!(cell(0, 0).bold() && cell(0, 2).italic() && cell(0, 0).underline());
    assert!(cell(2, 5).bold() && !cell(2, 4).bold() && cell(2, 11).italic());
    assert_eq!(cell(2, 36).fgcolor(), vt100::Color::Idx(6));
    assert!(!cell(20, 32).bold(), "nothing ends it");
}

#[test]
fn it_is_the_same_however_it_comes_in() {
    for columns in [12, 20, 42, 80] {
        for has_colours in [true, false] {
            let look = Look {
                rows: 200,
                has_colours,
                ..look(columns)
            };
            let whole = screen(look, &[DOCUMENT]);
            let pieces = one_by_one(DOCUMENT);
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            let bit_by_bit = screen(look, &pieces);
            assert_eq!(
                whole.screen().contents_formatted(),
                bit_by_bit.screen().contents_formatted(),
                "{columns} columns, colours: {has_colours}"
            );
        }
    }
}

#[test]
fn nothing_is_held_back() {
    let mut rendering = Rendering::new(look(40));
    let mut terminal = vt100::Parser::new(24, 40, 0);
    let mut so_far = String::new();
    for word in ["The ", "*cat", " sat", "* on", " `the", "` mat", "."] {
        let out = rendering.push(word);
        assert!(!out.is_empty(), "{word}");
        terminal.process(out.replace('\n', "\r\n").as_bytes());
        so_far.push_str(word);
        let letters = |text: &str| text.replace(['*', '`', ' ', '\n'], "");
        assert_eq!(letters(&terminal.screen().contents()), letters(&so_far));
    }
}

#[test]
fn words_are_written_as_they_come_and_nothing_else() {
    let mut rendering = Rendering::new(look(80));
    assert_eq!(rendering.push("Hello"), "Hello");
    assert_eq!(rendering.push(", world"), ", world");
    assert_eq!(rendering.push("\nand"), "\nand");
    assert_eq!(rendering.end(), "\n");
    assert_eq!(rendering.end(), "");
}

#[test]
fn without_colours_the_text_is_as_it_is_and_only_wrapped() {
    let plain = Look {
        has_colours: false,
        rows: 60,
        ..look(42)
    };
    let mut rendering = Rendering::new(plain);
    let out = rendering.push(DOCUMENT) + &rendering.end();
    assert!(!out.contains('\u{1b}'), "{out:?}");
    let words = |text: &str| {
        text.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let chopped = "a lin\ne that";
    assert_eq!(words(&out.replace(chopped, "a line that")), words(DOCUMENT));
    assert!(out.lines().all(|line| columns_of(line) <= 41), "{out}");
}

#[test]
fn what_steers_a_terminal_does_not_come_through() {
    let mut rendering = Rendering::new(look(80));
    let out = rendering.push("a\u{1b}]0;title\u{7}b\r\u{9b}2Jc\u{1b}") + &rendering.push("[31md");
    assert_eq!(out, "a]0;titleb2Jc[31md");
}

#[test]
fn a_line_that_is_longer_than_the_screen_is_high_does_not_destroy_what_stands_above() {
    let look = Look {
        rows: 4,
        ..look(20)
    };
    let mut rendering = Rendering::new(look);
    let mut terminal = vt100::Parser::new(4, 20, 100);
    terminal.process(b"above\r\n");
    let text = "**".to_owned() + &"word ".repeat(40) + "end** and more";
    for piece in one_by_one(&text) {
        terminal.process(rendering.push(&piece).replace('\n', "\r\n").as_bytes());
    }
    terminal.process(rendering.end().replace('\n', "\r\n").as_bytes());
    assert!(terminal.screen().contents().contains("and more"));
    terminal.screen_mut().set_scrollback(100);
    assert!(terminal.screen().contents().starts_with("above\n"));
}

#[test]
fn endless_lines_are_broken() {
    let mut rendering = Rendering::new(look(80));
    let mut out = String::new();
    for _ in 0..20 {
        out += &rendering.push(&"x".repeat(1_000));
    }
    assert_eq!(
        out.replace(['\n', '\r'], "").replace("\u{1b}[J", "").len(),
        20_000
    );
    assert!(rendering.line.len() <= LINE_BYTES_MAX);
}

proptest::proptest! {
    /// Any text, cut anywhere, is shown as the whole one is, and no row is too wide.
    #[test]
    fn any_text_comes_through(
        text in "([a-z *_`~#>|\\-\\[\\]()\\\\\n日é\u{301}0-9.]|\\*\\*|```|- ){0,120}",
        cut in 0_usize..400,
        columns in 10_usize..60,
        has_colours in proptest::bool::ANY,
    ) {
        let look = Look { rows: 400, has_colours, ..look(columns) };
        let cut = text.floor_char_boundary(cut.min(text.len()));
        let whole = screen(look, &[&text]);
        let parts = screen(look, &[&text[..cut], &text[cut..]]);
        proptest::prop_assert_eq!(whole.screen().contents_formatted(), parts.screen().contents_formatted());
    }
}
