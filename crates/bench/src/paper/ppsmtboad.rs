//! The two experiments of the PPSMTBOAD paper.

use super::plot::Scale;
use super::{Experiment, Figure};
use crate::random::Random;
use crate::report::EngineReport;
use crate::workload::Input;
use crate::workload::predicates::Predicates;

/// The paper's naive algorithm is counting. Its own is walked by one thread, as all others are, and as the paper has it by several.
const ENGINES: &[(&str, &str)] = &[
    ("counting", "#e69f00"),
    ("carzaniga", "#009e73"),
    ("ppsmtboad", "#cc79a7"),
    ("ppsmtboad-parallel", "#000000"),
    ("enindex-letter", "#56b4e9"),
    ("enindex", "#0072b2"),
    ("enroute", "#d55e00"),
];

/// The names of the paper's second experiment.
const NAMES: usize = 600;
/// As many as the paper has.
const RUNS: u64 = 15;

const BY_ATTRIBUTES: Figure = Figure {
    title: "PPSMTBOAD, experiment 1: matching time by the number of attributes",
    text: "5,000 subscriptions of 5 to 15 predicates; the paper does not say how many attributes an event has: 25.\n\
           `counting` is what the paper calls naive; `enindex-letter` is the Enindex paper's algorithm to the letter,\n\
           `enindex` finds each predicate's truth once; `enroute` is the production engine.",
    ordinate: "microseconds an event",
    file: "ppsmtboad-1.svg",
    is_of_events: true,
    of: EngineReport::microseconds,
};

const BY_SUBSCRIPTIONS: Figure = Figure {
    title: "PPSMTBOAD, experiment 2: matching time by the number of subscriptions",
    text: "600 attributes, events of 25, subscriptions of 5 to 20 predicates; engines as in experiment 1.",
    ordinate: "microseconds an event",
    file: "ppsmtboad-2.svg",
    is_of_events: true,
    of: EngineReport::microseconds,
};

pub(super) fn by_attributes(quick: bool) -> Experiment {
    let (runs, subscriptions, attributes): (u64, usize, &[usize]) = if quick {
        (2, 500, &[50, 250, 500])
    } else {
        (RUNS, 5_000, &[50, 100, 150, 200, 250, 300, 350, 400, 450, 500])
    };
    Experiment {
        engines: ENGINES,
        abscissa: "attributes",
        scale: Scale::Linear,
        points: attributes.iter().map(|count| (*count, subscriptions)).collect(),
        input: |attributes, seed| input(attributes, 15, seed),
        runs,
        figures: &[BY_ATTRIBUTES],
    }
}

pub(super) fn by_subscriptions(quick: bool) -> Experiment {
    let (runs, subscriptions): (u64, &[usize]) =
        if quick { (2, &[300, 1_000]) } else { (RUNS, &[1_000, 5_000, 10_000, 25_000, 50_000, 75_000, 100_000]) };
    Experiment {
        engines: ENGINES,
        abscissa: "subscriptions",
        scale: Scale::Logarithmic,
        points: subscriptions.iter().map(|count| (*count, *count)).collect(),
        input: |_, seed| input(NAMES, 20, seed),
        runs,
        figures: &[BY_SUBSCRIPTIONS],
    }
}

fn input(attributes: usize, most_predicates: usize, seed: u64) -> Input {
    let mut random = Random::new(seed, 0);
    Input::new(Box::new(Predicates::new(attributes, 5, most_predicates, &mut random)), seed)
}
