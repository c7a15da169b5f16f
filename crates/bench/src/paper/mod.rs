//! The papers' experiments again: tables and plots, with the circumstances they were measured under.
//!
//! - PPSMTBOAD: matching time by the number of attributes, and by the number of subscriptions.
//! - Enindex: memory, construction, update and matching by the number of subscriptions.

mod enindex;
mod plot;
mod ppsmtboad;

use crate::machine::Circumstances;
use crate::measure::{Plan, measure};
use crate::report::{EngineReport, short};
use crate::workload::Input;
use plot::{Plot, Scale, Series};
use std::fmt::Write;
use std::io;
use std::path::Path;
use std::time::Duration;

/// Does all experiments, and writes a page with tables for each paper and a plot for each table into `output`.
///
/// Returns where an engine's results were wrong; such figures are worth nothing.
///
/// # Errors
/// A file cannot be written.
pub fn run(output: &Path, quick: bool) -> io::Result<Vec<String>> {
    std::fs::create_dir_all(output)?;
    let circumstances = Circumstances::now();
    let mut differences = Vec::new();
    let pages = [
        ("ppsmtboad.md", "PPSMTBOAD's experiments", ppsmtboad::experiments(quick)),
        ("enindex.md", "The Enindex's experiments", enindex::experiments(quick)),
    ];
    for (file, title, experiments) in pages {
        let mut page = String::new();
        for experiment in experiments {
            let points = experiment.measure(&mut differences);
            for figure in experiment.figures {
                let table = Table::new(figure, &points);
                page += &experiment.section(figure, &table);
                std::fs::write(output.join(figure.file), experiment.plot(figure, &table).to_svg())?;
            }
        }
        std::fs::write(output.join(file), heading(title, &circumstances, quick) + &page)?;
    }
    Ok(differences)
}

/// What is varied, and what is measured.
struct Experiment {
    /// By name, with the colour of its line: of Okabe and Ito's, which most people can tell apart.
    engines: &'static [(&'static str, &'static str)],
    /// What the abscissa is.
    abscissa: &'static str,
    scale: Scale,
    /// By point: the abscissa, and how many subscriptions there are.
    points: Vec<(usize, usize)>,
    /// The input at an abscissa, by seed.
    input: fn(usize, u64) -> Input,
    /// A point is the mean of so many runs, each with a seed of its own.
    runs: u64,
    figures: &'static [Figure],
}

/// One figure of each engine, over the points of an experiment.
#[derive(Clone, Copy)]
struct Figure {
    title: &'static str,
    /// What stands below the title: parameters, and what was taken where the paper is silent.
    text: &'static str,
    /// With its unit.
    ordinate: &'static str,
    /// Of the plot.
    file: &'static str,
    /// `None` if the engine was given up.
    of: fn(&EngineReport) -> Option<f64>,
}

/// What was measured at one abscissa: run by run, engine by engine.
struct Point {
    abscissa: usize,
    runs: Vec<Vec<EngineReport>>,
}

/// A figure's numbers: by point, its abscissa and a number for each engine.
struct Table {
    rows: Vec<(usize, Vec<Option<f64>>)>,
}

impl Experiment {
    fn engine_names(&self) -> Vec<&'static str> {
        self.engines.iter().map(|(name, _)| *name).collect()
    }

    fn measure(&self, differences: &mut Vec<String>) -> Vec<Point> {
        let mut points = Vec::new();
        for (abscissa, subscriptions) in &self.points {
            let mut point = Point { abscissa: *abscissa, runs: Vec::new() };
            for seed in 1..=self.runs {
                let plan = Plan {
                    engines: self.engine_names(),
                    subscriptions: *subscriptions,
                    events: 200,
                    checked: 4,
                    rounds: 3,
                    time: Duration::from_secs(2),
                    build_time: Duration::from_secs(60),
                    slowest: false,
                    seed,
                };
                let report = measure(&(self.input)(*abscissa, seed), &plan);
                for engine in &report.engines {
                    let wrong = engine.differences.iter();
                    differences
                        .extend(wrong.map(|text| format!("{}, {abscissa} {}: {text}", engine.name, self.abscissa)));
                }
                point.runs.push(report.engines);
            }
            eprintln!("{abscissa} {}: done", self.abscissa);
            points.push(point);
        }
        points
    }

    fn section(&self, figure: &Figure, table: &Table) -> String {
        let mut text = format!("\n## {}\n\n{}\n", figure.title, figure.text);
        let runs = if self.runs == 1 { "one run".to_owned() } else { format!("the mean of {} runs", self.runs) };
        text += &format!("Each number is {runs}.\n\n![{}]({})\n\n", figure.title, figure.file);
        text += &format!("| {}: {} | {} |\n", self.abscissa, figure.ordinate, self.engine_names().join(" | "));
        text += &format!("| ---: |{}\n", " ---: |".repeat(self.engines.len()));
        for (abscissa, numbers) in &table.rows {
            let numbers: Vec<String> =
                numbers.iter().map(|number| number.map_or("given up".to_owned(), short)).collect();
            writeln!(text, "| {abscissa} | {} |", numbers.join(" | ")).expect("strings take all");
        }
        text
    }

    fn plot(&self, figure: &Figure, table: &Table) -> Plot {
        let series = self.engines.iter().enumerate().map(|(engine, (name, colour))| {
            let point = |(abscissa, numbers): &(usize, Vec<Option<f64>>)| Some((*abscissa as f64, numbers[engine]?));
            Series { name: (*name).to_owned(), colour, points: table.rows.iter().filter_map(point).collect() }
        });
        Plot {
            title: figure.title.to_owned(),
            x_label: self.abscissa.to_owned(),
            y_label: figure.ordinate.to_owned(),
            x_scale: self.scale,
            series: series.collect(),
        }
    }
}

impl Table {
    /// Means over the runs. An engine that was given up in one of them has no number.
    fn new(figure: &Figure, points: &[Point]) -> Table {
        let mean = |runs: &[Vec<EngineReport>], engine: usize| {
            let numbers: Option<Vec<f64>> = runs.iter().map(|run| (figure.of)(&run[engine])).collect();
            numbers.map(|numbers| numbers.iter().sum::<f64>() / numbers.len() as f64)
        };
        let row = |point: &Point| {
            let engines = point.runs.first().map_or(0, Vec::len);
            (point.abscissa, (0..engines).map(|engine| mean(&point.runs, engine)).collect())
        };
        Table { rows: points.iter().map(row).collect() }
    }
}

fn heading(title: &str, circumstances: &Circumstances, quick: bool) -> String {
    let Circumstances { processor, threads, system, command, date } = circumstances;
    let warning = if quick { "\n**A quick look: inputs are smaller than the texts say.**\n" } else { "" };
    format!("# {title}\n\nMeasured on {processor}, {threads} threads, {system}, by `{command}`, {date}.\n{warning}")
}
