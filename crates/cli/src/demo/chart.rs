//! The demo as a picture: tokens of the context, request by request.

use plotters::prelude::*;

use super::play::{Played, Way};
use crate::words;

const SIZE: (u32, u32) = (960, 480);

/// Draws all ways into one chart.
pub(crate) fn svg(played: &[Played]) -> Result<String, String> {
    let mut svg = String::new();
    draw(played, &mut svg).map_err(|error| error.to_string())?;
    Ok(svg)
}

fn draw(played: &[Played], svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let requests = played
        .iter()
        .map(|played| played.contexts.len())
        .max()
        .unwrap_or(1)
        .max(1);
    let tokens = played
        .iter()
        .flat_map(|played| played.contexts.iter().flatten())
        .max()
        .copied()
        .unwrap_or(1);
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(
            "Tokens of the context, request by request",
            ("sans-serif", 20),
        )
        .margin(16)
        .x_label_area_size(40)
        .y_label_area_size(80)
        .build_cartesian_2d(0..requests, 0..tokens + tokens / 8)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .bold_line_style(BLACK.mix(0.1))
        .x_desc("requests")
        .y_desc("tokens")
        .y_label_formatter(&|tokens| tick(*tokens))
        .draw()?;
    for played in played {
        let color = color(played.way);
        let line: Vec<(usize, u64)> = played
            .contexts
            .iter()
            .enumerate()
            .filter_map(|(at, tokens)| Some((at, (*tokens)?)))
            .collect();
        let end = line.last().copied();
        chart
            .draw_series(LineSeries::new(line, color.stroke_width(2)))?
            .label(label(played))
            .legend(move |(x, y)| {
                PathElement::new(vec![(x, y), (x + 20, y)], color.stroke_width(3))
            });
        if let Some(end) = end.filter(|_| played.refused > 0) {
            chart.draw_series(std::iter::once(Cross::new(end, 6, color.stroke_width(3))))?;
        }
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .label_font(("sans-serif", 14))
        .draw()?;
    area.present()?;
    Ok(())
}

/// `0`, `50k`; `2,500` where that is not so round.
fn tick(tokens: u64) -> String {
    match tokens {
        0 => "0".to_owned(),
        _ if tokens.is_multiple_of(1000) => format!("{}k", tokens / 1000),
        _ => words::number(tokens),
    }
}

fn label(played: &Played) -> String {
    let waited: f64 = played
        .waits
        .iter()
        .map(std::time::Duration::as_secs_f64)
        .sum();
    match played.way {
        Way::None => format!(
            "no compaction: {} refused",
            words::counted(played.refused, "request")
        ),
        Way::Traditional | Way::Instant => format!(
            "{}: {}, {} waited in all",
            played.way.title(),
            words::counted(played.waits.len(), "swap"),
            if waited < 1.0 {
                format!("{:.0} ms", waited * 1000.0)
            } else {
                format!("{waited:.0} s")
            }
        ),
    }
}

fn color(way: Way) -> RGBColor {
    match way {
        Way::None => RGBColor(150, 150, 150),
        Way::Traditional => RGBColor(214, 110, 30),
        Way::Instant => RGBColor(30, 110, 190),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_short_where_they_are_round() {
        assert_eq!(
            [0, 500, 2_000, 2_500, 50_000].map(tick),
            ["0", "500", "2k", "2,500", "50k"]
        );
    }
}
