//! The papers' experiments again: tables and plots, with the circumstances they were measured under.
//!
//! - PPSMTBOAD: matching time by the number of attributes, and by the number of subscriptions.
//! - Enindex: memory, construction, update and matching by the number of subscriptions.
//!
//! A part writes files of its own, so that one can be done again without the others. Its time is bounded: an engine that is
//! slow is given fewer events, one whose build takes too long is left out from there on, and the table says so.

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
use std::time::{Duration, Instant};

/// How many events an engine is given that is fast enough.
const EVENTS: usize = 200;
/// How long an engine may take in a run for matching, and how long for removing.
const TIME: Duration = Duration::from_secs(2);
/// How long it may take in a run to take all subscriptions.
const BUILD_TIME: Duration = Duration::from_secs(60);

/// An experiment, with a page and plots of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// PPSMTBOAD's first experiment: matching by the number of attributes
    Ppsmtboad1,
    /// PPSMTBOAD's second experiment: matching by the number of subscriptions
    Ppsmtboad2,
    /// The Enindex paper's four questions: memory, construction, update, matching
    Enindex,
}

impl Part {
    /// All of them.
    pub const ALL: [Part; 3] = [Part::Ppsmtboad1, Part::Ppsmtboad2, Part::Enindex];

    fn title(self) -> &'static str {
        match self {
            Part::Ppsmtboad1 => "PPSMTBOAD, experiment 1",
            Part::Ppsmtboad2 => "PPSMTBOAD, experiment 2",
            Part::Enindex => "The Enindex's four questions",
        }
    }

    fn file(self) -> &'static str {
        match self {
            Part::Ppsmtboad1 => "ppsmtboad-1.md",
            Part::Ppsmtboad2 => "ppsmtboad-2.md",
            Part::Enindex => "enindex.md",
        }
    }

    fn experiment(self, quick: bool) -> Experiment {
        match self {
            Part::Ppsmtboad1 => ppsmtboad::by_attributes(quick),
            Part::Ppsmtboad2 => ppsmtboad::by_subscriptions(quick),
            Part::Enindex => enindex::by_subscriptions(quick),
        }
    }
}

/// Does an experiment, and writes a page with its tables and a plot for each table into `output`.
///
/// Returns where an engine's results were wrong; such figures are worth nothing.
///
/// # Errors
/// A file cannot be written.
pub fn run(part: Part, output: &Path, quick: bool) -> io::Result<Vec<String>> {
    std::fs::create_dir_all(output)?;
    let circumstances = Circumstances::now();
    let mut differences = Vec::new();
    let experiment = part.experiment(quick);
    let points = experiment.measure(&mut differences);
    let mut page = heading(part.title(), &circumstances, quick);
    for figure in experiment.figures {
        let table = Table::new(figure, experiment.engines, &points);
        page += &experiment.section(figure, &table);
        std::fs::write(output.join(figure.file), experiment.plot(figure, &table).to_svg())?;
    }
    std::fs::write(output.join(part.file()), page)?;
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
    /// Whether it is about matching the events.
    is_of_events: bool,
    /// `None` if the engine was given up.
    of: fn(&EngineReport) -> Option<f64>,
}

/// What was measured at one abscissa, run by run.
struct Point {
    abscissa: usize,
    runs: Vec<Vec<EngineReport>>,
}

/// A figure's numbers: by point, its abscissa and what stands there for each engine.
struct Table {
    rows: Vec<(usize, Vec<Option<Cell>>)>,
}

/// A number of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cell {
    mean: f64,
    /// In one of the runs at least there was no time for all events.
    has_fewer_events: bool,
}

impl Experiment {
    fn engine_names(&self) -> Vec<&'static str> {
        self.engines.iter().map(|(name, _)| *name).collect()
    }

    fn measure(&self, differences: &mut Vec<String>) -> Vec<Point> {
        let mut points = Vec::new();
        let mut engines = self.engine_names();
        for (abscissa, subscriptions) in &self.points {
            let mut point = Point { abscissa: *abscissa, runs: Vec::new() };
            let start = Instant::now();
            for seed in 1..=self.runs {
                let plan = Plan {
                    engines: engines.clone(),
                    subscriptions: *subscriptions,
                    events: EVENTS,
                    checked: 4,
                    rounds: 3,
                    time: TIME,
                    build_time: BUILD_TIME,
                    slowest: false,
                    seed,
                };
                let report = measure(&(self.input)(*abscissa, seed), &plan);
                for engine in &report.engines {
                    let wrong = engine.differences.iter();
                    differences
                        .extend(wrong.map(|text| format!("{}, {abscissa} {}: {text}", engine.name, self.abscissa)));
                }
                engines.retain(|name| report.engine(name).is_some_and(|engine| engine.matching.is_some()));
                point.runs.push(report.engines);
            }
            eprintln!("{abscissa} {}: {} s", self.abscissa, start.elapsed().as_secs());
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
        for (abscissa, cells) in &table.rows {
            let cells: Vec<String> = cells.iter().map(|cell| cell.map_or("given up".to_owned(), Cell::text)).collect();
            writeln!(text, "| {abscissa} | {} |", cells.join(" | ")).expect("strings take all");
        }
        let has = |test: fn(&Option<Cell>) -> bool| table.rows.iter().flat_map(|(_, cells)| cells).any(test);
        if has(|cell| cell.is_some_and(|cell| cell.has_fewer_events)) {
            text += &format!("\n\\*: not all {EVENTS} events, as those took more than {} s.\n", TIME.as_secs_f64());
        }
        if has(Option::is_none) {
            let most = BUILD_TIME.as_secs();
            text += &format!("\ngiven up: a build took more than {most} s, here or with fewer subscriptions.\n");
        }
        text
    }

    fn plot(&self, figure: &Figure, table: &Table) -> Plot {
        let series = self.engines.iter().enumerate().map(|(engine, (name, colour))| {
            let point = |(abscissa, cells): &(usize, Vec<Option<Cell>>)| Some((*abscissa as f64, cells[engine]?.mean));
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
    /// Means over the runs. An engine that was given up in one of them, or left out, has no number.
    fn new(figure: &Figure, engines: &[(&str, &str)], points: &[Point]) -> Table {
        let cell = |runs: &[Vec<EngineReport>], name: &str| {
            let reports: Vec<&EngineReport> = runs.iter().flatten().filter(|engine| engine.name == name).collect();
            let numbers: Option<Vec<f64>> = reports.iter().map(|engine| (figure.of)(engine)).collect();
            let numbers = numbers.filter(|numbers| numbers.len() == runs.len())?;
            let events = |engine: &&EngineReport| engine.matching.as_ref().map_or(0, |matching| matching.events);
            let has_fewer_events = figure.is_of_events && reports.iter().any(|engine| events(engine) < EVENTS);
            Some(Cell { mean: numbers.iter().sum::<f64>() / numbers.len() as f64, has_fewer_events })
        };
        let row = |point: &Point| (point.abscissa, engines.iter().map(|(name, _)| cell(&point.runs, name)).collect());
        Table { rows: points.iter().map(row).collect() }
    }
}

impl Cell {
    fn text(self) -> String {
        if self.has_fewer_events { format!("{} \\*", short(self.mean)) } else { short(self.mean) }
    }
}

fn heading(title: &str, circumstances: &Circumstances, quick: bool) -> String {
    let Circumstances { processor, threads, system, command, date } = circumstances;
    let warning = if quick { "\n**A quick look: inputs are smaller than the texts say.**\n" } else { "" };
    format!("# {title}\n\nMeasured on {processor}, {threads} threads, {system}, by `{command}`, {date}.\n{warning}")
}

#[cfg(test)]
mod tests;
