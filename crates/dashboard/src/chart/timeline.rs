//! The timeline of a session: context tokens by request, the marks, swaps, builds and costs.
//!
//! It contains numbers and fixed words, never words of a conversation; texts are escaped in any case.

use std::fmt::Write as _;

use throughline::EventRecord;
use throughline_transcript::text::grouped;

use super::svg::{dollars, escaped, line, round_up, short, steps, text};
use crate::timeline::{RequestPoint, Timeline, TimelineEvent};

/// Narrowest column, in units of the picture; more requests share columns.
const COLUMN_MIN: f64 = 3.0;
/// How far the line of the other case may stretch the picture, in largest prompts.
const STRETCH_MAX: f64 = 2.4;

const TOP: f64 = 38.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 12.0;
const TOKENS: f64 = 210.0;
const LANE: f64 = 18.0;
const GAP: f64 = 26.0;
const COST: f64 = 72.0;
const FOOT: f64 = 20.0;

/// Consecutive requests in one column.
struct Column<'a> {
    /// Index of the first.
    first: usize,
    /// The largest of them.
    largest: &'a RequestPoint,
    last: &'a RequestPoint,
    count: usize,
    cost: u64,
}

struct Picture<'a> {
    out: String,
    timeline: &'a Timeline,
    columns: Vec<Column<'a>>,
    width: f64,
    tokens_max: f64,
    cost_max: f64,
}

/// Draws the timeline at this width.
pub(crate) fn draw(timeline: &Timeline, width: f64) -> String {
    let room = width - LEFT - RIGHT;
    let most = (room / COLUMN_MIN).max(1.0) as usize;
    let together = timeline.requests.len().div_ceil(most).max(1);
    let columns: Vec<Column<'_>> = timeline
        .requests
        .chunks(together)
        .enumerate()
        .filter_map(|(index, points)| {
            Some(Column {
                first: index * together,
                largest: points.iter().max_by_key(|point| point.tokens)?,
                last: points.last()?,
                count: points.len(),
                cost: points.iter().map(|point| point.cost_nanodollars).sum(),
            })
        })
        .collect();
    let most_of =
        |of: fn(&RequestPoint) -> u64| timeline.requests.iter().map(of).max().unwrap_or(0) as f64;
    let base = (timeline.marks.limit as f64).max(most_of(|point| point.tokens));
    // A far larger window must not flatten the bars.
    let used = most_of(|point| point.tokens.max(point.tokens_otherwise));
    let base = if used > 0.0 && used < base / 8.0 {
        used * 1.5
    } else {
        base
    };
    let tokens_max = most_of(|point| point.tokens_otherwise)
        .min(base * STRETCH_MAX)
        .max(base)
        .max(1.0)
        * 1.06;
    let cost_max =
        most_of(|point| point.total_nanodollars.max(point.without_nanodollars)).max(1.0) * 1.08;
    let mut picture = Picture {
        out: String::new(),
        timeline,
        columns,
        width,
        tokens_max,
        cost_max,
    };
    picture.all();
    picture.out
}

impl Picture<'_> {
    fn all(&mut self) {
        let height = TOP + TOKENS + LANE + GAP + COST + FOOT;
        let count = self.timeline.requests.len();
        let swaps = self.timeline.sums.swaps;
        let _ = write!(
            self.out,
            r#"<svg viewBox="0 0 {:.0} {height:.0}" role="img" aria-label="Context tokens of {count} requests, with {swaps} swaps">"#,
            self.width
        );
        self.grid();
        self.bars();
        self.marks();
        self.otherwise();
        self.costs();
        self.happened();
        self.feet();
        self.hits();
        self.out.push_str("</svg>");
    }

    fn room(&self) -> f64 {
        self.width - LEFT - RIGHT
    }

    /// Where a column begins.
    fn x(&self, column: usize) -> f64 {
        LEFT + self.room() * column as f64 / self.columns.len().max(1) as f64
    }

    /// Where a request begins.
    fn x_of(&self, request: usize) -> f64 {
        let column = self
            .columns
            .iter()
            .position(|column| request < column.first + column.count)
            .unwrap_or(self.columns.len());
        self.x(column)
    }

    fn y(&self, tokens: u64) -> f64 {
        let share = (tokens as f64 / self.tokens_max).min(1.0);
        TOP + TOKENS * (1.0 - share)
    }

    fn cost_y(&self, nanodollars: u64) -> f64 {
        let top = TOP + TOKENS + LANE + GAP;
        top + COST * (1.0 - nanodollars as f64 / self.cost_max)
    }

    fn line(&mut self, class: &str, x1: f64, y1: f64, x2: f64, y2: f64) {
        line(&mut self.out, class, x1, y1, x2, y2);
    }

    fn text(&mut self, class: &str, x: f64, y: f64, words: &str) {
        text(&mut self.out, class, x, y, words);
    }

    fn grid(&mut self) {
        let right = self.width - RIGHT;
        for step in steps(self.tokens_max) {
            let y = self.y(step);
            self.line("grid", LEFT, y, right, y);
            self.text("axis end", LEFT - 6.0, y + 4.0, &short(step));
        }
        for step in steps(self.cost_max).into_iter().filter(|step| *step > 0) {
            let y = self.cost_y(step);
            self.line("grid", LEFT, y, right, y);
            self.text("axis end", LEFT - 6.0, y + 4.0, &dollars(step));
        }
        let bottom = TOP + TOKENS + LANE + GAP + COST;
        self.line("base", LEFT, TOP + TOKENS, right, TOP + TOKENS);
        self.line("base", LEFT, bottom, right, bottom);
        self.text("name", LEFT, 11.0, "context tokens");
        self.text("name", LEFT, bottom - COST - 8.0, "cost so far");
    }

    fn bars(&mut self) {
        for index in 0..self.columns.len() {
            let point = self.columns[index].largest.clone();
            let (x, next) = (self.x(index), self.x(index + 1));
            let gap = if next - x > 4.0 { 1.0 } else { 0.2 };
            let width = (next - x - gap).max(0.5);
            let mut below = 0;
            for (class, tokens) in [
                ("read", point.cache_read),
                ("write", point.cache_write),
                ("new", point.uncached),
            ] {
                if tokens == 0 {
                    continue;
                }
                let (top, bottom) = (self.y(below + tokens), self.y(below));
                let height = bottom - top;
                let _ = write!(
                    self.out,
                    r#"<rect class="column {class}" x="{x:.1}" y="{top:.1}" width="{width:.1}" height="{height:.1}"/>"#
                );
                below += tokens;
            }
        }
    }

    fn marks(&mut self) {
        let marks = self.timeline.marks;
        let right = self.width - RIGHT;
        for (class, name, tokens) in [
            ("soft", "soft mark", marks.soft),
            ("hard", "hard mark", marks.hard),
            ("limit", "largest prompt", marks.limit),
        ] {
            if tokens as f64 > self.tokens_max {
                continue;
            }
            let y = self.y(tokens);
            self.line(&format!("level {class}"), LEFT, y, right, y);
            let label = format!("{name} {}", short(tokens));
            self.text(&format!("label {class} end"), right, y - 4.0, &label);
        }
    }

    fn otherwise(&mut self) {
        let mut path = String::new();
        for index in 0..self.columns.len() {
            let y = self.y(self.columns[index].last.tokens_otherwise);
            let (x, next) = (self.x(index), self.x(index + 1));
            let _ = write!(path, "{x:.1},{y:.1} {next:.1},{y:.1} ");
        }
        let _ = write!(
            self.out,
            r#"<polyline class="otherwise" points="{}"/>"#,
            path.trim_end()
        );
    }

    fn costs(&mut self) {
        let bottom = TOP + TOKENS + LANE + GAP + COST;
        let (mut total, mut without) = (String::new(), String::new());
        let mut fitting_end = None;
        for index in 0..self.columns.len() {
            let last = self.columns[index].last.clone();
            let (x, next) = (self.x(index), self.x(index + 1));
            let y = self.cost_y(last.total_nanodollars);
            let _ = write!(total, "{x:.1},{y:.1} {next:.1},{y:.1} ");
            if last.fits_without {
                let y = self.cost_y(last.without_nanodollars);
                let _ = write!(without, "{x:.1},{y:.1} {next:.1},{y:.1} ");
                fitting_end = Some((next, y));
            }
        }
        if self.columns.is_empty() {
            return;
        }
        let end = self.x(self.columns.len());
        let _ = write!(
            self.out,
            r#"<polygon class="total" points="{LEFT:.1},{bottom:.1} {total}{end:.1},{bottom:.1}"/><polyline class="otherwise" points="{}"/>"#,
            without.trim_end()
        );
        // The point at which the window would have been full.
        if let Some((x, y)) = fitting_end.filter(|(x, _)| *x < end - 0.5) {
            let _ = write!(
                self.out,
                r#"<path class="stop" d="M{:.1} {:.1}l7 7m0 -7l-7 7"><title>the next request would not have fitted</title></path>"#,
                x - 3.5,
                y - 3.5
            );
            self.text("label stop", x + 7.0, y - 4.0, "window full");
        }
    }

    fn happened(&mut self) {
        let timeline = self.timeline;
        let lane = TOP + TOKENS + LANE / 2.0 + 2.0;
        let bottom = TOP + TOKENS + LANE + GAP + COST;
        let is_swap = |event: &&TimelineEvent| matches!(event.record, EventRecord::Swapped { .. });
        let swaps = timeline.events.iter().filter(is_swap);
        let is_crowded = swaps.count() as f64 > self.room() / 30.0;
        let mut number = 0;
        for event in &timeline.events {
            let x = self.x_of(event.after_requests);
            let title = escaped(&title(event));
            match event.record {
                EventRecord::Swapped { .. } => {
                    number += 1;
                    let _ = write!(
                        self.out,
                        r#"<g class="swap"><title>{title}</title><line x1="{x:.1}" y1="{TOP:.1}" x2="{x:.1}" y2="{bottom:.1}"/>"#
                    );
                    let y = TOP - 10.0;
                    if is_crowded {
                        let _ = write!(
                            self.out,
                            r#"<path d="M{:.1} {:.1}h8l-4 7z"/></g>"#,
                            x - 4.0,
                            y
                        );
                    } else {
                        let _ = write!(
                            self.out,
                            r#"<circle cx="{x:.1}" cy="{y:.1}" r="9"/><text x="{x:.1}" y="{:.1}">{number}</text></g>"#,
                            y + 4.0
                        );
                    }
                }
                EventRecord::Undone { .. } => {
                    let _ = write!(
                        self.out,
                        r#"<g class="undo"><title>{title}</title><line x1="{x:.1}" y1="{TOP:.1}" x2="{x:.1}" y2="{bottom:.1}"/><path d="M{:.1} {:.1}l7 -5v10z"/></g>"#,
                        x - 4.0,
                        TOP - 12.0
                    );
                }
                EventRecord::Built { .. }
                | EventRecord::Failed { .. }
                | EventRecord::Refused { .. }
                | EventRecord::FellBack { .. } => {
                    let is_built = matches!(event.record, EventRecord::Built { .. });
                    let class = if is_built { "built" } else { "unbuilt" };
                    let _ = write!(
                        self.out,
                        r#"<path class="{class}" d="M{x:.1} {:.1}l4 4l-4 4l-4 -4z"><title>{title}</title></path>"#,
                        lane - 4.0
                    );
                }
                _ => {}
            }
        }
    }

    fn feet(&mut self) {
        let bottom = TOP + TOKENS + LANE + GAP + COST;
        let count = self.timeline.requests.len();
        if count == 0 {
            self.text(
                "axis middle",
                self.width / 2.0,
                TOP + TOKENS / 2.0,
                "no request has been answered yet",
            );
            return;
        }
        let wanted = (self.room() / 90.0).max(2.0) as usize;
        let every = round_up(count.div_ceil(wanted));
        for request in (0..count).step_by(every) {
            let x = self.x_of(request);
            self.text("axis", x, bottom + 15.0, &format!("{}", request + 1));
        }
    }

    /// What a column shows when the pointer is on it.
    fn hits(&mut self) {
        let height = TOKENS + LANE + GAP + COST;
        for index in 0..self.columns.len() {
            let (x, next) = (self.x(index), self.x(index + 1));
            let column = &self.columns[index];
            let point = column.largest;
            let which = if column.count > 1 {
                format!(
                    "requests {}–{}",
                    column.first + 1,
                    column.first + column.count
                )
            } else {
                format!("request {}", column.first + 1)
            };
            let prompt = point.tokens.max(1);
            let otherwise = if self.timeline.is_rewriting {
                "without a memory"
            } else {
                "with the memory"
            };
            let words = format!(
                "{which}: {} tokens, {} % from the cache, {} written, {} at full price; {otherwise} {}; {}",
                grouped(point.tokens),
                point.cache_read * 100 / prompt,
                grouped(point.cache_write),
                grouped(point.uncached),
                grouped(column.last.tokens_otherwise),
                dollars(column.cost),
            );
            let width = next - x;
            let _ = write!(
                self.out,
                r#"<rect class="hit" x="{x:.1}" y="{TOP:.1}" width="{width:.1}" height="{height:.1}"><title>{}</title></rect>"#,
                escaped(&words)
            );
        }
    }
}

fn title(event: &TimelineEvent) -> String {
    format!("{}: {}", event.kind, event.words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stay_visible_for_any_number_of_requests() {
        let point = RequestPoint {
            tokens: 500,
            uncached: 500,
            tokens_otherwise: 900,
            ..RequestPoint::default()
        };
        for (count, columns) in [(0, 0), (1, 1), (300, 300), (301, 151), (100_000, 300)] {
            let mut timeline = Timeline::default();
            timeline.marks.limit = 1_000;
            timeline.requests = vec![point.clone(); count];
            let drawn = draw(&timeline, 958.0);
            let hits = drawn.matches("class=\"hit\"").count();
            assert!(
                hits <= 300 && (hits == columns || columns > 299),
                "{count}: {hits}"
            );
            assert!(!drawn.contains("NaN"), "{drawn}");
        }
    }

    #[test]
    fn words_of_an_event_stay_text() {
        let mut timeline = Timeline::default();
        timeline.events.push(TimelineEvent {
            kind: "fell-back".to_owned(),
            record: EventRecord::FellBack {
                class: String::new(),
                message: String::new(),
            },
            words: "</title><script>alert(1)</script>\"'&".to_owned(),
            ..TimelineEvent::default()
        });
        let drawn = draw(&timeline, 400.0);
        assert!(
            !drawn.contains("<script") && drawn.contains("&lt;script&gt;"),
            "{drawn}"
        );
    }
}
