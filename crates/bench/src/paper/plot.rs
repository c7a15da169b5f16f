//! Line plots as SVG: few lines, readable axes, names at the lines' side.

use std::fmt::{self, Write};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 170.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 60.0;
/// The least distance of two names in the legend.
const LEGEND_LINE: f64 = 18.0;
/// How an axis maps numbers to places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// From zero on, equal steps.
    Linear,
    /// Equal factors. Numbers must be above zero; others are not drawn.
    Logarithmic,
}

/// A line: its name, and its points by ascending abscissa.
#[derive(Clone, Debug)]
pub(super) struct Series {
    /// Stands in the legend.
    pub(super) name: String,
    /// As SVG has it.
    pub(super) colour: &'static str,
    /// Abscissa and ordinate.
    pub(super) points: Vec<(f64, f64)>,
}

/// A plot.
#[derive(Clone, Debug)]
pub(super) struct Plot {
    /// Stands above.
    pub(super) title: String,
    /// What the abscissas are, with their unit.
    pub(super) x_label: String,
    /// What the ordinates are, with their unit.
    pub(super) y_label: String,
    /// The scale of the abscissas; that of the ordinates is logarithmic.
    pub(super) x_scale: Scale,
    /// The lines.
    pub(super) series: Vec<Series>,
}

/// One axis: numbers from `first` to `last` lie from `start` to `end`.
struct Axis {
    scale: Scale,
    first: f64,
    last: f64,
    start: f64,
    end: f64,
}

impl Axis {
    /// An axis that holds all numbers, and ends at a tick or close to it.
    fn new(scale: Scale, numbers: impl Iterator<Item = f64>, start: f64, end: f64) -> Axis {
        let drawn = numbers.filter(|number| number.is_finite() && (*number > 0.0 || scale == Scale::Linear));
        let (least, greatest) =
            drawn.fold((f64::MAX, f64::MIN), |(least, greatest), number| (least.min(number), greatest.max(number)));
        let (least, greatest) = if least > greatest { (1.0, 10.0) } else { (least, greatest) };
        let (first, last) = match scale {
            Scale::Linear => (0.0, if greatest > 0.0 { greatest } else { 1.0 }),
            Scale::Logarithmic => (least / 1.3, greatest * 1.3),
        };
        Axis { scale, first, last, start, end }
    }

    fn place(&self, number: f64) -> f64 {
        let part = match self.scale {
            Scale::Linear => (number - self.first) / (self.last - self.first),
            Scale::Logarithmic => (number / self.first).ln() / (self.last / self.first).ln(),
        };
        self.start + part * (self.end - self.start)
    }

    /// Round numbers along the axis, four to ten or so.
    fn ticks(&self) -> Vec<f64> {
        match self.scale {
            Scale::Linear => {
                let rough = (self.last - self.first) / 6.0;
                let power = 10_f64.powf(rough.log10().floor());
                let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough);
                let step = factor.unwrap_or(10.0) * power;
                (0..=(self.last / step).floor() as u32).map(|index| f64::from(index) * step).collect()
            }
            Scale::Logarithmic => {
                let decades = (self.last / self.first).log10();
                let factors: &[f64] = if decades > 3.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
                let powers = self.first.log10().floor() as i32..=self.last.log10().ceil() as i32;
                powers
                    .flat_map(|power| factors.iter().map(move |factor| factor * 10_f64.powi(power)))
                    .filter(|tick| (self.first..=self.last).contains(tick))
                    .collect()
            }
        }
    }
}

impl Plot {
    /// The plot as an SVG document.
    pub(super) fn to_svg(&self) -> String {
        let mut svg = String::new();
        self.write(&mut svg).expect("strings take all");
        svg
    }

    fn write(&self, svg: &mut String) -> fmt::Result {
        let xs = self.series.iter().flat_map(|series| series.points.iter().map(|point| point.0));
        let ys = self.series.iter().flat_map(|series| series.points.iter().map(|point| point.1));
        let x_axis = Axis::new(self.x_scale, xs, LEFT, WIDTH - RIGHT);
        let y_axis = Axis::new(Scale::Logarithmic, ys, HEIGHT - BOTTOM, TOP);
        writeln!(
            svg,
            r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">
<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>
<text x="{LEFT}" y="26" font-size="16" font-weight="bold">{}</text>"##,
            escaped(&self.title)
        )?;
        self.write_axes(svg, &x_axis, &y_axis)?;
        let mut ends: Vec<LineEnd> = Vec::new();
        for series in &self.series {
            ends.extend(write_line(svg, series, &x_axis, &y_axis)?);
        }
        ends.sort_by(|a, b| a.y.total_cmp(&b.y));
        write_legend(svg, &ends)?;
        writeln!(svg, "</svg>")
    }

    fn write_axes(&self, svg: &mut String, x_axis: &Axis, y_axis: &Axis) -> fmt::Result {
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        for tick in x_axis.ticks() {
            let x = x_axis.place(tick);
            writeln!(svg, r##"<line x1="{x:.1}" y1="{TOP}" x2="{x:.1}" y2="{bottom}" stroke="#e4e4e4"/>"##)?;
            writeln!(svg, r#"<text x="{x:.1}" y="{}" text-anchor="middle">{}</text>"#, bottom + 20.0, label(tick))?;
        }
        for tick in y_axis.ticks() {
            let y = y_axis.place(tick);
            writeln!(svg, r##"<line x1="{LEFT}" y1="{y:.1}" x2="{right}" y2="{y:.1}" stroke="#e4e4e4"/>"##)?;
            let (x, y) = (LEFT - 8.0, y + 4.5);
            writeln!(svg, r#"<text x="{x}" y="{y:.1}" text-anchor="end">{}</text>"#, label(tick))?;
        }
        writeln!(
            svg,
            r##"<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="#444444"/>
<text x="{}" y="{}" text-anchor="middle">{}</text>
<text transform="translate(20 {}) rotate(-90)" text-anchor="middle">{}</text>"##,
            (LEFT + right) / 2.0,
            HEIGHT - 16.0,
            escaped(&self.x_label),
            (TOP + bottom) / 2.0,
            escaped(&self.y_label)
        )
    }
}

/// Where a line ends.
struct LineEnd<'a> {
    series: &'a Series,
    x: f64,
    y: f64,
}

/// Names beside the ends of their lines, given from top to bottom, moved apart where they would overlap.
fn write_legend(svg: &mut String, ends: &[LineEnd<'_>]) -> fmt::Result {
    let mut lowest = TOP;
    let mut places: Vec<f64> = Vec::with_capacity(ends.len());
    for end in ends {
        lowest = end.y.max(lowest);
        places.push(lowest);
        lowest += LEGEND_LINE;
    }
    // The last may not sink below the axis; then all above it move up.
    let mut highest = HEIGHT - BOTTOM + LEGEND_LINE;
    for place in places.iter_mut().rev() {
        highest = place.min(highest - LEGEND_LINE);
        *place = highest;
    }
    let x = WIDTH - RIGHT + 12.0;
    for (end, y) in ends.iter().zip(places) {
        let Series { name, colour, .. } = end.series;
        let (from, to) = (end.x + 5.0, x - 2.0);
        writeln!(svg, r#"<path d="M{from:.1} {:.1}L{to} {y:.1}" stroke="{colour}" stroke-width="0.7"/>"#, end.y)?;
        writeln!(svg, r#"<text x="{x}" y="{:.1}" fill="{colour}">{}</text>"#, y + 4.5, escaped(name))?;
    }
    Ok(())
}

/// Draws a line with a dot at each point; says where it ends, if it has a point.
fn write_line<'a>(
    svg: &mut String,
    series: &'a Series,
    x_axis: &Axis,
    y_axis: &Axis,
) -> Result<Option<LineEnd<'a>>, fmt::Error> {
    let colour = series.colour;
    let drawn = series.points.iter().filter(|(_, y)| y.is_finite() && *y > 0.0);
    let places: Vec<(f64, f64)> = drawn.map(|(x, y)| (x_axis.place(*x), y_axis.place(*y))).collect();
    let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    writeln!(svg, r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2"/>"#, path.join(" "))?;
    for (x, y) in &places {
        writeln!(svg, r#"<circle cx="{x:.1}" cy="{y:.1}" r="3" fill="{colour}"/>"#)?;
    }
    Ok(places.last().map(|(x, y)| LineEnd { series, x: *x, y: *y }))
}

/// A tick's number: thousands as `k`, millions as `M`.
fn label(number: f64) -> String {
    match number.abs() {
        0.0 => "0".to_owned(),
        size if size >= 1e6 => format!("{} M", trimmed(number / 1e6)),
        size if size >= 1e3 => format!("{} k", trimmed(number / 1e3)),
        _ => trimmed(number),
    }
}

fn trimmed(number: f64) -> String {
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within() {
        let linear = Axis::new(Scale::Linear, [50.0, 500.0].into_iter(), 0.0, 1.0);
        assert_eq!(linear.ticks(), [0.0, 100.0, 200.0, 300.0, 400.0, 500.0]);
        let logarithmic = Axis::new(Scale::Logarithmic, [0.9, 80.0].into_iter(), 0.0, 1.0);
        let labels: Vec<String> = logarithmic.ticks().into_iter().map(label).collect();
        assert_eq!(labels, ["1", "2", "5", "10", "20", "50", "100"]);
        let long = Axis::new(Scale::Logarithmic, [1.0, 99_000.0].into_iter(), 0.0, 1.0);
        assert_eq!(long.ticks().into_iter().map(label).collect::<Vec<_>>(), ["1", "10", "100", "1 k", "10 k", "100 k"]);
    }

    #[test]
    fn names_keep_apart_and_stay_inside() {
        let series =
            |name: &str, y| Series { name: name.to_owned(), colour: "black", points: vec![(1.0, 1.0), (2.0, y)] };
        let plot = Plot {
            title: "a < b".to_owned(),
            x_label: "x".to_owned(),
            y_label: "y".to_owned(),
            x_scale: Scale::Linear,
            series: vec![series("one", 1.0), series("two", 1.01), series("three", 100.0), series("four", 1.02)],
        };
        let svg = plot.to_svg();
        assert!(svg.contains("a &lt; b"));
        let place = |name: &str| {
            let end = svg.find(&format!(">{name}</text>")).unwrap();
            let start = svg[..end].rfind("y=\"").unwrap() + 3;
            let length = svg[start..].find('"').unwrap();
            svg[start..start + length].parse::<f64>().unwrap()
        };
        let places = ["three", "four", "two", "one"].map(place);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= LEGEND_LINE - 0.2), "{places:?}");
        assert!(places[0] > TOP && places[3] < HEIGHT - BOTTOM + 10.0, "{places:?}");
    }

    #[test]
    fn nothing_to_draw_is_no_failure() {
        let series =
            vec![Series { name: "none".to_owned(), colour: "black", points: vec![(1.0, 0.0), (2.0, f64::NAN)] }];
        let empty = String::new();
        let plot =
            Plot { title: empty.clone(), x_label: empty.clone(), y_label: empty, x_scale: Scale::Logarithmic, series };
        assert!(!plot.to_svg().contains("NaN"));
    }
}
