//! Lines over the requests of several sessions, in a picture that needs no style sheet.

use std::fmt::Write as _;

use super::svg::{escaped, line, round_up, short, steps, text};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 480.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 48.0;
/// Height of a row of the legend.
const ROW: f64 = 20.0;
/// About the width of a character of the legend.
const CHARACTER: f64 = 7.4;

const STYLE: &str = "<style>text{font:14px sans-serif;fill:#333}.title{font-size:20px;text-anchor:middle}\
    .axis{font-size:12px}.end{text-anchor:end}.middle{text-anchor:middle}.grid{stroke:#000;stroke-opacity:.1}\
    .base{stroke:#333}</style>";

/// One line of a chart.
#[derive(Clone, Debug)]
pub struct Line {
    /// What the legend says.
    pub label: String,
    /// Colour, as CSS writes it.
    pub color: &'static str,
    /// Tokens, request by request; none for a request that was refused.
    pub tokens: Vec<Option<u64>>,
    /// Whether a cross marks the end of the line.
    pub is_cut_off: bool,
}

/// Draws the lines as an SVG document.
#[must_use]
pub fn lines(title: &str, lines: &[Line]) -> String {
    let requests = lines.iter().map(|line| line.tokens.len()).max();
    let requests = requests.unwrap_or(1).max(1);
    let largest = lines.iter().flat_map(|line| line.tokens.iter().flatten());
    let tokens_max = largest.max().copied().unwrap_or(1).max(1) as f64 * 1.125;
    let x = |request: usize| LEFT + (WIDTH - LEFT - RIGHT) * request as f64 / requests as f64;
    let bottom = HEIGHT - BOTTOM;
    let y = |tokens: u64| bottom - (bottom - TOP) * tokens as f64 / tokens_max;
    let mut out = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0} {HEIGHT:.0}" width="{WIDTH:.0}" height="{HEIGHT:.0}" role="img" aria-label="{0}">{STYLE}<rect width="100%" height="100%" fill="#fff"/>"##,
        escaped(title)
    );
    text(&mut out, "title", WIDTH / 2.0, 28.0, title);
    for step in steps(tokens_max) {
        line(&mut out, "grid", LEFT, y(step), WIDTH - RIGHT, y(step));
        text(
            &mut out,
            "axis end",
            LEFT - 8.0,
            y(step) + 4.0,
            &short(step),
        );
    }
    for request in (0..requests).step_by(round_up(requests.div_ceil(8))) {
        let label = request.to_string();
        text(&mut out, "axis middle", x(request), bottom + 18.0, &label);
    }
    line(&mut out, "base", LEFT, bottom, WIDTH - RIGHT, bottom);
    line(&mut out, "base", LEFT, TOP, LEFT, bottom);
    text(&mut out, "middle", WIDTH / 2.0, HEIGHT - 8.0, "requests");
    text(&mut out, "", 8.0, TOP - 8.0, "tokens");
    for Line {
        color,
        tokens,
        is_cut_off,
        ..
    } in lines
    {
        let points = tokens.iter().enumerate();
        let points = points.filter_map(|(at, tokens)| Some((x(at), y((*tokens)?))));
        let points: Vec<(f64, f64)> = points.collect();
        let joined: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let _ = write!(
            out,
            r#"<polyline fill="none" stroke="{color}" stroke-width="2" points="{}"/>"#,
            joined.join(" ")
        );
        if let (true, Some((x, y))) = (is_cut_off, points.last()) {
            let _ = write!(
                out,
                r#"<path stroke="{color}" stroke-width="3" d="M{:.1} {:.1}l12 12m0 -12l-12 12"/>"#,
                x - 6.0,
                y - 6.0
            );
        }
    }
    legend(&mut out, lines);
    out.push_str("</svg>\n");
    out
}

/// The labels of the lines, in the upper right corner.
fn legend(out: &mut String, lines: &[Line]) {
    let longest = lines.iter().map(|line| line.label.chars().count()).max();
    let width = longest.unwrap_or(0) as f64 * CHARACTER + 48.0;
    let (left, top) = (WIDTH - RIGHT - width - 8.0, TOP + 8.0);
    let height = lines.len() as f64 * ROW + 8.0;
    let _ = write!(
        out,
        r##"<rect x="{left:.1}" y="{top:.1}" width="{width:.1}" height="{height:.1}" fill="#fff" fill-opacity=".85" stroke="#000" stroke-opacity=".3"/>"##
    );
    for (row, line) in lines.iter().enumerate() {
        let y = top + ROW * row as f64 + 14.0;
        let _ = write!(
            out,
            r#"<path stroke="{}" stroke-width="3" d="M{:.1} {y:.1}h20"/>"#,
            line.color,
            left + 8.0
        );
        text(out, "", left + 36.0, y + 5.0, &line.label);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_drawn_and_labelled() {
        let line = |label: &str, tokens: Vec<Option<u64>>, is_cut_off: bool| Line {
            label: label.to_owned(),
            color: "#1e6ebe",
            tokens,
            is_cut_off,
        };
        let drawn = lines(
            "Tokens & requests",
            &[
                line(
                    "none: <2> refused",
                    vec![Some(10_000), Some(50_000), None],
                    true,
                ),
                line("instant", vec![Some(10_000); 400], false),
                line("empty", vec![], true),
            ],
        );
        assert_eq!(drawn.matches("<polyline").count(), 3);
        assert_eq!(drawn.matches("l12 12").count(), 1);
        for text in [
            "Tokens &amp; requests",
            "none: &lt;2&gt; refused",
            ">40k<",
            ">300<",
        ] {
            assert!(drawn.contains(text), "{text}: {drawn}");
        }
        assert!(!drawn.contains("NaN") && !lines("", &[]).contains("NaN"));
    }
}
